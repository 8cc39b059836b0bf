#!/bin/sh
# drivers.sh FOLDER: unpacks the drivers of drivers.txt into FOLDER, for tests that compile for GPUs
# which are not here. Installs nothing and needs no root. When FOLDER is complete, does nothing.
#
#     FOLDER/mesa         the unpacked packages
#     FOLDER/loader       their dynamic loader: programs need the C library of the drivers
#     FOLDER/libraries    their libraries and stand-ins
#     FOLDER/libintel_noop_drm_shim.so   Intel's stand-in, built from Mesa's source package
#
# Exit code 77: the packages cannot be had here; one line names them.
# shellcheck disable=SC2046,SC2013
set -eu
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
table=$here/drivers.txt

say()
{
    echo "drivers: $*"
}

# Prints "package/suite" of the rows whose use is $1. Callers want its output split into words.
rows()
{
    awk -v use="$1" '$1 == use { print $2 "/" $3 }' "$table"
}

skip()
{
    say "skipped, because $*; not unpacked:" $(rows run) $(rows source)
    exit 77
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
wanted=$(cat "$table" "$here/drivers.sh" | cksum)
is_complete()
{
    [ "$(cat "$folder/complete" 2>/dev/null)" = "$wanted" ]
}

is_complete && exit 0
for tool in apt-get dpkg-deb python3 ninja pkg-config cc flock; do
    command -v "$tool" >/dev/null || skip "this machine has no $tool"
done

# The address of Debian's packages in this machine's apt sources.
debian_address()
{
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
        2>/dev/null | awk '
        /^URIs:/ { for (i = 2; i <= NF; i++) if ($i ~ /\/debian\/?$/) { print $i; exit } }
        /^deb /  { for (i = 2; i <= NF; i++) if ($i ~ /:.*\/debian\/?$/) { print $i; exit } }'
}

address=$(debian_address)
[ -n "$address" ] || skip "this machine's apt sources have no Debian"
exec 9>"$folder/lock"
flock 9
is_complete && exit 0 # another process has just completed it
rm -rf "$folder/apt" "$folder/tools" "$folder/source" "$folder/build"

# ---- packages ------------------------------------------------------------------------------

# apt gets folders of its own, so that this machine's packages count as absent.
apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
: >"$apt/status"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
trust="" && [ ! -e "$keys" ] || trust="[signed-by=$keys] "
for suite in $(awk '$1 ~ /^(run|build|source)$/ { print $3 }' "$table" | sort -u); do
    echo "deb $trust$address $suite main"
    echo "deb-src $trust$address $suite main"
done >"$apt/sources.list"
cat >"$apt/apt.conf" <<END
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "$apt";
Dir::State::Status "$apt/status";
Dir::Cache "$apt";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
APT::Get::List-Cleanup "false";
Debug::NoLocking "true";
END
export APT_CONFIG="$apt/apt.conf"
log=$folder/log.txt
say "unpacks Mesa's drivers into $folder"
{
    apt-get update -q &&
        apt-get install -y -q --download-only --no-install-recommends $(rows run)
} >"$log" 2>&1 || skip "packages cannot be downloaded (see $log)"
(cd "$apt" && apt-get download -q $(rows build) &&
    apt-get source -q --download-only $(rows source)) >>"$log" 2>&1 ||
    skip "packages cannot be downloaded (see $log)"
rm -rf "$folder/complete" "$folder/mesa" # of an earlier table
for file in "$apt"/archives/*.deb; do
    dpkg-deb -x "$file" "$folder/mesa"
done
loader=$(find "$folder/mesa/usr/lib" "$folder/mesa/lib" -name 'ld-linux*.so.*' 2>/dev/null |
    head -n 1)
[ -n "$loader" ] || skip "libc6 has no loader"
ln -sfn "${loader#"$folder"/}" "$folder/loader"
libraries=$(dirname "$(find "$folder/mesa" -name libvulkan.so.1 | head -n 1)")
ln -sfn "${libraries#"$folder"/}" "$folder/libraries"

# ---- Intel's stand-in ----------------------------------------------------------------------

tools=$folder/tools
for file in "$apt"/*.deb; do
    dpkg-deb -x "$file" "$tools"
done
python3 -m tarfile -e "$apt"/mesa_*.orig.tar.?z "$folder/source"
# The one target is compiled, nothing that needs flex or bison; the configuration asks for them. It
# links the unpacked libdrm, and runs with that of the driver's process.
mkdir -p "$tools/bin"
for tool in flex bison; do
    printf '#!/bin/sh\necho "%s 3.8"\n' "$tool" >"$tools/bin/$tool"
    chmod +x "$tools/bin/$tool"
done
libraries=$(dirname "$(find "$tools" -name libdrm.so | head -n 1)")
sed -i "s|^prefix=.*|prefix=$tools/usr|" "$libraries"/pkgconfig/*.pc
rm -f "$libraries"/*.a
for link in "$libraries"/*.so; do
    name=$(readlink "$link" | sed 's/\(\.so\.[0-9]*\).*/\1/')
    ln -sfn "$folder/libraries/$name" "$link"
done
say "builds Intel's stand-in for the kernel driver"
{
    export PYTHONPATH="$tools/usr/lib/python3/dist-packages" PATH="$tools/bin:$PATH" \
        PKG_CONFIG_PATH="$libraries/pkgconfig"
    python3 "$tools/usr/bin/meson" setup "$folder/build" "$folder"/source/mesa-* \
        --wrap-mode=nodownload -Dbuildtype=release -Dtools=drm-shim,intel -Dvulkan-drivers= \
        -Dgallium-drivers= -Dplatforms= -Dopengl=false -Dgles1=disabled -Dgles2=disabled \
        -Dglx=disabled -Degl=disabled -Dgbm=disabled -Dllvm=disabled -Dshader-cache=disabled \
        -Dzstd=disabled -Dxmlconfig=disabled -Dlibunwind=disabled -Dvalgrind=disabled &&
        ninja -C "$folder/build" src/intel/tools/libintel_noop_drm_shim.so
} >>"$log" 2>&1 || {
    tail -n 20 "$log"
    say "Intel's stand-in cannot be built: see $log"
    exit 1
}
cp "$folder/build/src/intel/tools/libintel_noop_drm_shim.so" "$folder/"
say "unpacked: Mesa $(dpkg-deb -f "$apt"/archives/mesa-vulkan-drivers_*.deb Version)"
rm -rf "$apt" "$tools" "$folder/source" "$folder/build"
echo "$wanted" >"$folder/complete"
