# Spark as Apache ships it, with the locked Python packages and this project: workers unpickle functions of `demux`.
FROM apache/spark:4.0.1-scala2.13-java17-python3-ubuntu

USER root
COPY locks/current.txt /opt/demux/locks/current.txt
RUN python3 -m pip install --no-cache-dir --require-hashes -r /opt/demux/locks/current.txt
COPY . /opt/demux
# the base image's user has no home, which Ivy needs; a new volume at /data takes its owner from here
RUN python3 -m pip install --no-cache-dir --no-deps --no-build-isolation /opt/demux \
    && install -d -o spark -g spark /home/spark /data

USER spark
ENV HOME=/home/spark PYSPARK_PYTHON=python3
WORKDIR /data
