#!/bin/sh
# Builds all that a release holds into dist/, from a commit, and the same byte for byte wherever that is done: `make dist`, or for some
# systems `make dist PLATFORMS=linux/amd64`.
#
#   celld_VERSION_OS_ARCH.tar.gz   the binary with docs, examples, man pages, completions, units, alerts; .cdx.json beside it is its bill of
#                                  materials
#   celld_VERSION_ARCH.deb, .rpm   packages
#   celld_VERSION_image.tar        the container image for both architectures, an OCI layout
#   celld-VERSION.tgz              the Helm chart
#   SHA256SUMS
set -eu
cd "$(dirname "$0")/.."
out=$PWD/dist
say() { echo "dist: $*"; }
: "${PLATFORMS:=linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}"
linux=$(for platform in $PLATFORMS; do case $platform in linux/*) echo "${platform#*/}" ;; esac; done)

commit=$(git rev-parse HEAD) || { say "needs a git checkout, as a release is made from a commit" >&2; exit 1; }
version=$(sed -n 's/^const version = "\(.*\)"$/\1/p' main.go)
if [ -n "${TAG-}" ] && [ "$TAG" != "v$version" ]; then say "the tag is $TAG, and main.go says $version" >&2; exit 1; fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CGO_ENABLED=0
date=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
# pack writes a tar of a folder that is the same wherever it is made.
pack() { tar --sort=name --format=pax --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime \
	--mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -chf - "$@" | gzip -9n; }

# pages unpacks what the docs lead to.
pages() { git -c tar.umask=0022 archive HEAD docs examples CONTRIBUTING.md SECURITY.md bench/README.md bench/results/latest.md | tar -xp -C "$1" && rm "$1"/docs/*.go; }

rm -rf "$out"
mkdir -p "$out/build"

say "celld $version of $commit"
go -C packaging run ./render -out "$out/build/files" -version "$version" -date "${date%T*}"
for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/}
	name=celld_${version}_${os}_$arch
	dir=$out/build/$name
	mkdir -p "$dir/systemd" "$dir/monitoring"
	say "binary for $os on $arch"
	GOOS=$os GOARCH=$arch go build -buildvcs=true -trimpath -ldflags='-s -w' -o "$dir/celld" .
	cp README.md CHANGELOG.md LICENSE "$dir"
	pages "$dir"
	cp -r "$out/build/files/man" "$out/build/files/completions" "$dir"
	cp examples/celld.service examples/celld.socket "$dir/systemd"
	cp examples/monitoring/* "$dir/monitoring"
	say "$name.tar.gz"
	pack -C "$out/build" "$name" >"$out/$name.tar.gz"
	say "$name.cdx.json"
	go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -noserial -notimestamp -std \
		-version "v$version" -output "$out/$name.cdx.json" "$dir/celld" 2>/dev/null
done

files=$out/build/package
mkdir -p "$files"
cp packaging/package/celld.sysusers packaging/package/copyright packaging/package/lintian-overrides examples/celld.socket \
	examples/monitoring/celld-rules.yaml examples/monitoring/celld-dashboard.json LICENSE "$out/build/files/env" \
	"$out"/build/files/completions/* "$files"
: "${MAINTAINER:=celld maintainers <maintainers@celld.invalid>}" "${HOMEPAGE:=https://celld.invalid}"
printf 'celld (%s) stable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "$version" "$MAINTAINER" \
	"$(TZ=UTC git log -1 --date=format-local:'%a, %d %b %Y %H:%M:%S +0000' --format=%cd)" | gzip -9n >"$files/changelog.gz"
pages "$files"
cp CHANGELOG.md "$files"
for page in "$out"/build/files/man/*; do gzip -9nc "$page" >"$files/$(basename "$page").gz"; done
sed -e 's|/usr/local/bin|/usr/bin|' -e 's|^DynamicUser=yes|User=celld\nGroup=celld\nRemoveIPC=yes|' -e '/^#.*install/d' -e '/^#.*systemctl/d' \
	examples/celld.service >"$files/celld.service"
for arch in $linux; do
	cp "$out/build/celld_${version}_linux_$arch/celld" "$files"
	find "$files" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
	for format in deb rpm; do
		say "celld_${version}_$arch.$format"
		VERSION=$version ARCH=$arch FILES=$files MAINTAINER=$MAINTAINER HOMEPAGE=$HOMEPAGE \
			go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4 package --config packaging/package/nfpm.yaml --packager $format \
			--target "$out/celld_${version}_$arch.$format" >/dev/null
	done
done

if [ -n "$linux" ]; then
	say "celld_${version}_image.tar"
	# shellcheck disable=SC2046 # a word for each
	go -C packaging run ./image -out "$out/celld_${version}_image.tar" -version "$version" -commit "$commit" -date "$date" \
		$(for arch in $linux; do echo "$arch=$out/build/celld_${version}_linux_$arch/celld"; done)
fi

say "celld-$version.tgz"
cp -rL packaging/chart "$out/build/celld"
sed -i -e "s/^version: .*/version: $version/" -e "s/^appVersion: .*/appVersion: $version/" "$out/build/celld/Chart.yaml"
pack -C "$out/build" celld >"$out/celld-$version.tgz"

rm -rf "$out/build"
(cd "$out" && sha256sum celld* >SHA256SUMS)
say "all is in dist/"
