"""A cluster of its own for a randomised test, of the programs in PAIMON_BINDIR."""
import os
import shutil
import subprocess
import tempfile

from pgwire import Connection


class Server:
    def __init__(self, name, settings=()):
        self.bin = os.environ['PAIMON_BINDIR']
        # The path of a Unix socket is short.
        base = os.environ.get('PAIMON_TMP', '/tmp')
        self.dir = tempfile.mkdtemp(prefix=name + '.', dir=base)
        self.data = os.path.join(self.dir, 'data')
        self.sockets = tempfile.mkdtemp(prefix='s.', dir=base)
        self.log = os.path.join(self.dir, 'server.log')
        self._run('initdb', '-D', self.data, '-U', 'postgres', '-A', 'trust', '--no-locale', '--encoding=UTF8', '--no-sync')
        with open(os.path.join(self.data, 'postgresql.conf'), 'a', encoding='utf8') as conf:
            for line in ("shared_preload_libraries = 'paimon_am'", 'fsync = off', 'max_prepared_transactions = 20',
                         "listen_addresses = ''", "unix_socket_directories = '%s'" % self.sockets,
                         "log_line_prefix = '%m %b[%p] %q%a '", 'shared_buffers = 64MB', 'max_connections = 30') + tuple(settings):
                conf.write(line + '\n')
        self.start()
        with_extension = self.connect()
        with_extension.query('CREATE EXTENSION paimon_am')
        with_extension.close()

    def _run(self, program, *args):
        done = subprocess.run([os.path.join(self.bin, program), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise RuntimeError('%s %s: %s' % (program, ' '.join(args), done.stdout.decode('utf8', 'replace')))

    def start(self):
        # pg_ctl's child keeps its standard output open: not a pipe
        with open(os.path.join(self.dir, 'pg_ctl.log'), 'ab') as out:
            code = subprocess.run([os.path.join(self.bin, 'pg_ctl'), '-D', self.data, '-l', self.log, '-t', '300', '-w', 'start'],
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False).returncode
        if code != 0:
            raise RuntimeError('the server does not start; its log ends:\n' + self.log_tail())

    def stop(self, mode='fast'):
        self._run('pg_ctl', '-D', self.data, '-m', mode, '-t', '300', '-w', 'stop')

    def restart(self, mode):
        self.stop(mode)
        self.start()

    def connect(self, **args):
        return Connection(self.sockets, **args)

    def activity(self):
        """What the server's sessions are at, for the report of a statement that hangs."""
        conn = self.connect(limit=20)
        rows = conn.query("SELECT pid, backend_type, state, wait_event_type, wait_event, pg_blocking_pids(pid), left(query, 100) FROM pg_stat_activity "
                          "WHERE pid <> pg_backend_pid() AND (state <> 'idle' OR backend_type LIKE 'paimon%')")
        conn.close()
        return '\n'.join(map(str, rows))

    def log_tail(self, lines=40):
        with open(self.log, encoding='utf8', errors='replace') as log:
            return ''.join(log.readlines()[-lines:])

    def log_lines(self, *words):
        """Lines of the server's log that contain one of the words."""
        with open(self.log, encoding='utf8', errors='replace') as log:
            return [line.rstrip('\n') for line in log if any(word in line for word in words)]

    def remove(self):
        try:
            self.stop('immediate')
        except RuntimeError:
            pass
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)
