#!/bin/sh
# tools/setup.sh install LANE: .venv/LANE holds what locks/LANE.txt says, and this project, editable; and its jars are here.
# tools/setup.sh java LANE:    prints the home of a Java that the lane's Spark runs on.
# tools/setup.sh browser LANE: prints the path of a Chromium, in which the tests look at the status page.
# a second run is safe; what is missing is installed as root on Debian, and named elsewhere.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }
stop() { say "setup: $*"; exit 1; }

task=${1:-} lane=${2:-}
case $lane in
    current) pythons='3.13 3.12 3.11 3.10' javas='17 21' ;;
    oldest) pythons='3.11 3.10' javas='17 11 8' ;;
    *) stop 'usage: tools/setup.sh install|java|browser current|oldest' ;;
esac
venv=.venv/$lane log=.venv/$lane.log
mkdir -p .venv

among() { # word, list
    case " $2 " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

apt() { # package: true when it got installed; only root on Debian may try
    [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null || return 1
    say "installing $1"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$1"; } \
        >>"$log" 2>&1 </dev/null
}

install_line() { # Debian package, Homebrew formula
    if [ "$(uname)" = Darwin ]; then
        echo "brew install $2"
    elif command -v apt-get >/dev/null; then
        echo "sudo apt-get install -y $1"
    else
        echo "install the equivalent of Debian's $1"
    fi
}

java_home_of() { # java command: its home, when the lane's Spark runs on it
    shown=$("$1" -XshowSettings:properties -version 2>&1 </dev/null) || return 1
    version=$(printf '%s\n' "$shown" | sed -n 's/^ *java\.specification\.version = \(1\.\)\{0,1\}//p')
    among "${version:-none}" "$javas" || return 1
    printf '%s\n' "$shown" | sed -n 's/^ *java\.home = //p'
}

find_java() {
    for home in "${JAVA_HOME:-}" PATH /usr/lib/jvm/* /Library/Java/JavaVirtualMachines/*/Contents/Home \
        /opt/homebrew/opt/openjdk@* /usr/local/opt/openjdk@* "${HOME:-}"/.sdkman/candidates/java/* \
        "$(/usr/libexec/java_home -v 17 2>/dev/null || true)"; do
        command=$home/bin/java
        [ "$home" != PATH ] || command=$(command -v java) || continue
        if [ -x "$command" ] && java_home_of "$command"; then return; fi
    done
    return 1
}

show_java() {
    find_java && return
    # Debian 13 has 21 and no 17.
    for version in 17 21; do
        if among $version "$javas" && apt "openjdk-$version-jre-headless"; then find_java && return; fi
    done
    stop "no Java $(echo "$javas" | sed 's/ / or /g') found. Type: $(install_line openjdk-17-jre-headless openjdk@17)"
}

find_browser() {
    if [ -n "${CHROME_BIN:-}" ]; then
        command -v "$CHROME_BIN" || stop "CHROME_BIN=$CHROME_BIN is no program."
        return
    fi
    for name in chromium chromium-headless-shell chromium-browser google-chrome google-chrome-stable \
        '/Applications/Chromium.app/Contents/MacOS/Chromium' \
        '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'; do
        command -v "$name" && return
    done
    return 1
}

show_browser() {
    find_browser && return
    # the first has no window and is half the size; old releases have the second alone.
    for package in chromium-headless-shell chromium; do
        if apt $package; then find_browser && return; fi
    done
    stop "no Chromium found. Type: $(install_line chromium '--cask chromium'), or give CHROME_BIN=/path/to/it."
}

version_of() { # python command: 3.11, or nothing
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null </dev/null || true
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        if among "$(version_of "$PYTHON")" "$pythons"; then echo "$PYTHON"; return; fi
        # one PYTHON serves both lanes only where both can use it.
        [ "$lane" = oldest ] || stop "PYTHON=$PYTHON is '$(version_of "$PYTHON")', but the $lane lane needs one of $pythons."
    fi
    for name in python3 $(printf 'python%s ' $pythons); do
        if command -v "$name" >/dev/null && among "$(version_of "$name")" "$pythons"; then
            command -v "$name"
            return
        fi
    done
    stop "the $lane lane needs Python $(echo "$pythons" | sed 's/ / or /g') and none is in PATH: install one, or give PYTHON=/path/to/it."
}

logged() { # command...: quiet; on failure the end of the log and its name
    "$@" >>"$log" 2>&1 </dev/null && return
    tail -n 15 "$log" >&2
    stop "this failed: $*; the full log is $log"
}

packages() { # python command: a new virtual environment with exactly the locked packages
    version=$(version_of "$1")
    if ! "$1" -c 'import ensurepip, venv' 2>/dev/null; then
        apt "python$version-venv" || stop "$1 cannot make virtual environments. Type: $(install_line "python$version-venv" "python@$version")"
    fi
    say "$lane: Python $version, new virtual environment in $venv"
    logged "$1" -m venv --clear "$venv"
    say "$lane: installing $(grep -c '^[a-z].*==' "locks/$lane.txt") locked packages (a few minutes the first time)"
    logged "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
        --require-hashes -r "locks/$lane.txt"
    cp "locks/$lane.txt" "$venv/lock.txt"
}

install_lane() {
    : >"$log"
    show_java >/dev/null
    if ! cmp -s "locks/$lane.txt" "$venv/lock.txt"; then
        python=$(find_python)
        packages "$python"
    fi
    say "$lane: installing this project"
    logged "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
        --no-deps --no-build-isolation -e .
    say "$lane: fetching the jars of its Spark"
    (JAVA_HOME=$(show_java); export JAVA_HOME; logged "$venv/bin/python" -m tools.jars)
    touch "$venv/.ready"
}

case $task in
    install) install_lane ;;
    java) show_java ;;
    browser) show_browser ;;
    *) stop 'usage: tools/setup.sh install|java|browser current|oldest' ;;
esac
