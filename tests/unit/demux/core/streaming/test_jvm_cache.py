"""What a machine keeps of a Spark that started."""

from __future__ import annotations

from pathlib import Path

from demux.core.streaming.jvm_cache import JvmCache

CONF = {"spark.jars.packages": "a:b:1,c:d:2", "spark.jars.excludes": "e:f", "spark.master": "local[1]"}


def made(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).touch()
    return [(folder / name).as_uri() for name in names]


def test_known_jars_are_in_the_place_of_their_packages_until_one_is_gone(tmp_path: Path) -> None:
    cache = JvmCache(tmp_path / "cache", "java")
    assert cache.with_jars(CONF) == CONF
    jars = made(tmp_path, "b 1.jar", "d-2.jar")
    cache.keep_jars(CONF, jars)
    assert cache.with_jars(CONF) == {"spark.master": "local[1]", "spark.jars": ",".join(jars)}
    # other packages have other jars
    other = {**CONF, "spark.jars.excludes": ""}
    assert cache.with_jars(other) == other
    (tmp_path / "d-2.jar").unlink()
    assert cache.with_jars(CONF) == CONF


def test_jars_of_the_users_own_or_of_elsewhere_are_left_as_they_are(tmp_path: Path) -> None:
    cache = JvmCache(tmp_path, "java")
    own = {**CONF, "spark.jars": "/mine.jar"}
    cache.keep_jars(own, made(tmp_path, "mine.jar"))
    cache.keep_jars(CONF, ["spark://127.0.0.1:1/jars/a.jar"])
    cache.keep_jars(CONF, [])
    cache.keep_jars({"spark.jars.packages": ""}, made(tmp_path, "mine.jar"))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.jar"]
    assert (cache.with_jars(own), cache.with_jars(CONF)) == (own, CONF)


def test_a_cache_that_is_spoilt_or_cannot_be_written_is_as_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    no_folder = JvmCache(tmp_path / "file", "java")
    no_folder.keep_jars(CONF, made(tmp_path, "a.jar"))
    assert no_folder.with_jars(CONF) == CONF
    cache = JvmCache(tmp_path / "cache", "java")
    cache.keep_jars(CONF, made(tmp_path, "a.jar"))
    (kept,) = cache.folder.iterdir()
    kept.write_text("[", encoding="utf-8")
    assert cache.with_jars(CONF) == CONF


def test_the_archive_of_classes_is_used_where_it_is_and_nobody_names_another(tmp_path: Path) -> None:
    cache = JvmCache(tmp_path, "java")
    assert cache.java_option("-Xms1g") == ""
    cache.classes.touch()
    assert cache.java_option("-Xms1g") == f"-XX:SharedArchiveFile={cache.classes}"
    assert cache.java_option("-XX:ArchiveClassesAtExit=/new.jsa") == ""
    assert JvmCache(tmp_path, "another").java_option("") == ""


def test_the_cache_is_the_users_and_its_archive_is_of_one_java(tmp_path: Path) -> None:
    found = JvmCache.of({"XDG_CACHE_HOME": str(tmp_path), "JAVA_HOME": "/opt/java"})
    assert found == JvmCache(tmp_path / "protobuf-demux" / "spark", "/opt/java")
