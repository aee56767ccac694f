/* Files: descriptors, memory files, devices, views. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "tests/guest/test.h"

TEST(file_tmp_read_write)
{
    char buf[64];
    struct stat st;
    int fd = open("/tmp/weir-test-a", O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    CHECK(write(fd, "hello world", 11) == 11);
    CHECK(lseek(fd, 6, SEEK_SET) == 6);
    CHECK(read(fd, buf, sizeof(buf)) == 5 && memcmp(buf, "world", 5) == 0);
    CHECK(read(fd, buf, sizeof(buf)) == 0);
    CHECK(pwrite(fd, "W", 1, 6) == 1);
    CHECK(pread(fd, buf, 5, 6) == 5 && memcmp(buf, "World", 5) == 0);
    CHECK(lseek(fd, 0, SEEK_CUR) == 11);
    CHECK(lseek(fd, -1, SEEK_END) == 10);
    CHECK_ERRNO(lseek(fd, -1, SEEK_SET), EINVAL);
    CHECK(fstat(fd, &st) == 0 && st.st_size == 11 && S_ISREG(st.st_mode));
    CHECK(ftruncate(fd, 4) == 0);
    CHECK(fstat(fd, &st) == 0 && st.st_size == 4);
    CHECK(ftruncate(fd, 10000) == 0);
    CHECK(pread(fd, buf, 8, 2) == 8 && memcmp(buf, "ll\0\0\0\0\0\0", 8) == 0);
    CHECK(fsync(fd) == 0);
    close(fd);
    CHECK(stat("/tmp/weir-test-a", &st) == 0 && st.st_size == 10000);
    CHECK(rename("/tmp/weir-test-a", "/tmp/weir-test-b") == 0);
    CHECK_ERRNO(stat("/tmp/weir-test-a", &st), ENOENT);
    CHECK(unlink("/tmp/weir-test-b") == 0);
    CHECK_ERRNO(unlink("/tmp/weir-test-b"), ENOENT);
    CHECK_ERRNO(open("/tmp/weir-test-b", O_RDONLY), ENOENT);
}

TEST(file_unlinked_stays_readable)
{
    char c;
    int fd = open("/tmp/weir-test-u", O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    CHECK(write(fd, "x", 1) == 1);
    CHECK_ERRNO(open("/tmp/weir-test-u", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    CHECK(unlink("/tmp/weir-test-u") == 0);
    CHECK(pread(fd, &c, 1, 0) == 1 && c == 'x');
    close(fd);
}

TEST(file_append_and_vectors)
{
    char a[4] = "", b[8] = "";
    struct iovec out[3] = { { (void *)(uintptr_t)"abc", 3 }, { NULL, 0 }, { (void *)(uintptr_t)"defg", 4 } };
    struct iovec in[2] = { { a, 2 }, { b, 8 } };
    int fd = open("/tmp/weir-test-v", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0644);
    CHECK(writev(fd, out, 3) == 7);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK(write(fd, "h", 1) == 1);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK(readv(fd, in, 2) == 8);
    CHECK(memcmp(a, "ab", 2) == 0 && memcmp(b, "cdefgh", 6) == 0);
    CHECK(preadv(fd, in, 2, 6) == 2 && memcmp(a, "gh", 2) == 0);
    CHECK_ERRNO(writev(fd, out, -1), EINVAL);
    CHECK_ERRNO(writev(fd, out, 2000), EINVAL);
    close(fd);
    unlink("/tmp/weir-test-v");
}

TEST(file_directories)
{
    struct stat st;
    mkdir("/tmp/weir-dir", 0755);
    CHECK_ERRNO(mkdir("/tmp/weir-dir", 0755), EEXIST);
    int fd = open("/tmp/weir-dir/inside", O_WRONLY | O_CREAT, 0644);
    CHECK(fd >= 0);
    close(fd);
    CHECK_ERRNO(open("/tmp/weir-none/x", O_WRONLY | O_CREAT, 0644), ENOENT);
    DIR *d = opendir("/tmp/weir-dir");
    CHECK(d != NULL);
    int found = 0;
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        found += strcmp(e->d_name, "inside") == 0;
    }
    CHECK(found == 1);
    if (d) {
        closedir(d);
    }
    CHECK_ERRNO(rmdir("/tmp/weir-dir"), ENOTEMPTY);
    CHECK_ERRNO(unlink("/tmp/weir-dir"), in_weir() ? EISDIR : EISDIR);
    CHECK(unlink("/tmp/weir-dir/./inside") == 0);
    CHECK(stat("/tmp/../tmp//weir-dir/", &st) == 0 && S_ISDIR(st.st_mode));
    CHECK(rmdir("/tmp/weir-dir") == 0);
    CHECK(open("/tmp", O_RDONLY | O_DIRECTORY) >= 0);
    CHECK_ERRNO(open("/dev/null", O_RDONLY | O_DIRECTORY), ENOTDIR);
    CHECK_ERRNO(open("/tmp", O_WRONLY), EISDIR);
}

TEST(file_descriptors)
{
    int fds[2];
    CHECK(pipe(fds) == 0);
    int copy = dup(fds[1]);
    CHECK(copy > fds[1]);
    CHECK(write(copy, "z", 1) == 1);
    CHECK(dup2(fds[0], 200) == 200);
    char c;
    CHECK(read(200, &c, 1) == 1 && c == 'z');
    CHECK(dup3(fds[0], 201, O_CLOEXEC) == 201);
    CHECK(fcntl(201, F_GETFD) == FD_CLOEXEC);
    CHECK(fcntl(200, F_GETFD) == 0);
    CHECK(fcntl(200, F_SETFD, FD_CLOEXEC) == 0 && fcntl(200, F_GETFD) == FD_CLOEXEC);
    CHECK_ERRNO(dup3(fds[0], fds[0], 0), EINVAL);
    CHECK(dup2(fds[0], fds[0]) == fds[0]);
    CHECK(fcntl(fds[0], F_DUPFD, 300) == 300);
    CHECK((fcntl(fds[0], F_GETFL) & O_ACCMODE) == O_RDONLY);
    CHECK((fcntl(fds[1], F_GETFL) & O_ACCMODE) == O_WRONLY);
    CHECK_ERRNO(write(fds[0], "x", 1), EBADF);
    CHECK_ERRNO(read(fds[1], &c, 1), EBADF);
    CHECK_ERRNO(lseek(fds[0], 0, SEEK_SET), ESPIPE);
    CHECK(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
    CHECK_ERRNO(read(fds[0], &c, 1), EAGAIN);
    CHECK(close(200) == 0 && close(201) == 0 && close(300) == 0 && close(copy) == 0);
    CHECK_ERRNO(close(200), EBADF);
    CHECK_ERRNO(dup(999), EBADF);
    CHECK_ERRNO(close(-1), EBADF);
    CHECK_ERRNO(read(1000000, &c, 1), EBADF);
    close(fds[0]);
    close(fds[1]);
    int lowest = dup(1);
    CHECK(lowest == fds[0]); /* the lowest free one again */
    close(lowest);
}

TEST(file_descriptor_limit)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(limit.rlim_cur >= 1024);
    if (!in_weir()) {
        return;
    }
    int last = -1;
    long opened = 0;
    for (;;) {
        int fd = dup(1);
        if (fd < 0) {
            break;
        }
        last = fd;
        opened++;
    }
    CHECK(errno == EMFILE);
    CHECK(last == (int)limit.rlim_cur - 1);
    for (int fd = last; opened > 0; fd--, opened--) {
        close(fd);
    }
    int fd = dup(1);
    CHECK(fd >= 0 && fd < 100);
    close(fd);
}

static int race_fd, race_stop;

static void *race_reader(void *arg)
{
    char c;
    while (!LOAD(race_stop)) {
        long n = read(LOAD(race_fd), &c, 1);
        CHECK(n == 0 || (n == -1 && errno == EBADF));
    }
    return arg;
}

/* Lookups race with closing and reopening of the same number. */
TEST(file_descriptor_close_race)
{
    pthread_t t[3];
    STORE(race_stop, 0);
    STORE(race_fd, dup(1));
    close(race_fd);
    for (int i = 0; i < 3; i++) {
        t[i] = start(race_reader, NULL);
    }
    for (int i = 0; i < 2000; i++) {
        int fd = open("/dev/null", O_RDONLY);
        CHECK(fd >= 0);
        close(fd);
    }
    STORE(race_stop, 1);
    for (int i = 0; i < 3; i++) {
        join(t[i]);
    }
}

TEST(file_devices)
{
    char buf[32], other[32];
    int fd = open("/dev/zero", O_RDONLY);
    memset(buf, 1, sizeof(buf));
    CHECK(read(fd, buf, sizeof(buf)) == sizeof(buf) && buf[0] == 0 && buf[31] == 0);
    close(fd);
    fd = open("/dev/null", O_RDWR);
    CHECK(write(fd, buf, 10) == 10 && read(fd, buf, 10) == 0);
    close(fd);
    fd = open("/dev/full", O_WRONLY);
    CHECK_ERRNO(write(fd, "x", 1), ENOSPC);
    close(fd);
    fd = open("/dev/urandom", O_RDONLY);
    CHECK(read(fd, buf, sizeof(buf)) == sizeof(buf));
    CHECK(getrandom(other, sizeof(other), 0) == sizeof(other));
    CHECK(memcmp(buf, other, sizeof(buf)) != 0);
    close(fd);
    CHECK_ERRNO(getrandom(other, sizeof(other), 0x100), EINVAL);
}

static bool contains(const char *path, const char *text)
{
    static char buf[1 << 16];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;
    buf[n] = '\0';
    if (f) {
        fclose(f);
    }
    return strstr(buf, text) != NULL;
}

TEST(file_proc_views)
{
    char buf[256], pid[64];
    CHECK(contains("/proc/self/maps", "guest-tests") || contains("/proc/self/maps", "/app"));
    CHECK(contains("/proc/self/status", "Threads:"));
    CHECK(contains("/proc/meminfo", "MemTotal:"));
    CHECK(contains("/proc/cpuinfo", "processor\t: 0"));
    CHECK(contains("/proc/stat", "cpu0 "));
    CHECK(contains("/proc/loadavg", "."));
    CHECK(readlink("/proc/self/exe", buf, sizeof(buf)) > 0);
    CHECK(contains("/sys/devices/system/cpu/online", "0"));
    snprintf(pid, sizeof(pid), "/proc/%d/stat", getpid());
    snprintf(buf, sizeof(buf), "%d (", getpid());
    CHECK(contains(pid, buf));
    CHECK_ERRNO(open("/proc/999999/stat", O_RDONLY), ENOENT);
}

TEST(file_weir_views)
{
    if (!in_weir()) {
        return;
    }
    CHECK(contains("/proc/weir/metrics", "weir_switches_total{cpu=\"0\"}"));
    CHECK(contains("/proc/weir/sched", "\"policy\":"));
    CHECK(contains("/proc/weir/threads", "state=running"));
    CHECK(contains("/proc/weir/memory", "anon"));
    CHECK(contains("/proc/weir/futex", "asleep"));
    CHECK(contains("/sys/fs/cgroup/cpu.max", "100000"));
    CHECK(contains("/sys/fs/cgroup/cpu.stat", "nr_throttled"));
    CHECK(contains("/sys/fs/cgroup/memory.stat", "anon "));
    CHECK_ERRNO(open("/proc/weir/metrics", O_WRONLY), EACCES);
    CHECK_ERRNO(open("/app", O_RDWR), EROFS);
    CHECK_ERRNO(open("/new-file", O_RDWR | O_CREAT, 0644), EROFS);
    int fd = open("/proc/weir/mark", O_WRONLY);
    CHECK(fd >= 0);
    CHECK_ERRNO(write(fd, "nonsense\n", 9), EINVAL);
    CHECK_ERRNO(write(fd, "end never\n", 10), EINVAL);
    CHECK(write(fd, "begin guest-test\n", 17) == 17);
    CHECK(write(fd, "end guest-test\n", 15) == 15);
    close(fd);
}

TEST(file_own_image)
{
    char head[4];
    if (!in_weir()) {
        return;
    }
    struct stat st;
    int fd = open("/app", O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 10000);
    CHECK(read(fd, head, 4) == 4 && memcmp(head, "\177ELF", 4) == 0);
    char *p = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(p != MAP_FAILED && memcmp(p, "\177ELF", 4) == 0);
    munmap(p, 8192);
    int out = open("/tmp/weir-copy", O_RDWR | O_CREAT | O_TRUNC, 0644);
    off_t offset = 1;
    CHECK(sendfile(out, fd, &offset, 3) == 3 && offset == 4);
    CHECK(pread(out, head, 3, 0) == 3 && memcmp(head, "ELF", 3) == 0);
    close(out);
    unlink("/tmp/weir-copy");
    close(fd);
}

TEST(file_identity_calls)
{
    struct utsname u;
    struct sysinfo info;
    CHECK(uname(&u) == 0 && strcmp(u.sysname, "Linux") == 0 && strcmp(u.machine, "x86_64") == 0);
    CHECK(sysinfo(&info) == 0 && info.totalram > info.freeram);
    CHECK(getpid() > 0);
    char cwd[64];
    CHECK(getcwd(cwd, sizeof(cwd)) != NULL);
    CHECK_ERRNO(ioctl(0, 0x9999, 0) , ENOTTY);
    CHECK(isatty(1) == 0 || !in_weir());
    CHECK(sysconf(_SC_PAGESIZE) == 4096);
}

TEST(file_stdio)
{
    char line[64];
    FILE *f = fopen("/tmp/weir-stdio", "w+");
    CHECK(f != NULL);
    for (int i = 0; i < 1000; i++) {
        fprintf(f, "line %d\n", i);
    }
    rewind(f);
    for (int i = 0; i < 1000; i++) {
        int n = -1;
        CHECK(fgets(line, sizeof(line), f) != NULL && sscanf(line, "line %d", &n) == 1 && n == i);
    }
    fclose(f);
    unlink("/tmp/weir-stdio");
}
