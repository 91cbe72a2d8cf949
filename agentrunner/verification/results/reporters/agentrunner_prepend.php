<?php
// Runs before every PHP program of the project under test: PHPUnit and what builds on it get one more
// option. It must never fail or print.
(static function () {
    if (PHP_SAPI !== 'cli' || empty($_SERVER['argv'][0])) {
        return;
    }
    $program = basename((string) $_SERVER['argv'][0], '.phar');
    if (!in_array($program, ['phpunit', 'paratest', 'pest'], true)) {
        return;
    }
    foreach (array_slice($_SERVER['argv'], 1) as $word) {
        if (preg_match('/^--(log-junit|list-\w+|help|version|generate-configuration|check-version)(=|$)/', $word)) {
            return;
        }
    }
    $place = dirname(__DIR__);
    $file = sprintf('%s/phpunit-%020d-%d-%s', $place, (int) (microtime(true) * 1000000), getmypid(), bin2hex(random_bytes(4)));
    @file_put_contents($file . '.cwd', getcwd());
    $_SERVER['argv'][] = '--log-junit';
    $_SERVER['argv'][] = $file . '.xml';
    $_SERVER['argc'] = count($_SERVER['argv']);
    $GLOBALS['argv'] = $_SERVER['argv'];
    $GLOBALS['argc'] = $_SERVER['argc'];
    // Processes that a session starts are none of ours.
    $rest = str_replace(':' . __DIR__, '', (string) getenv('PHP_INI_SCAN_DIR'));
    putenv($rest === '' ? 'PHP_INI_SCAN_DIR' : 'PHP_INI_SCAN_DIR=' . $rest);
    unset($_ENV['PHP_INI_SCAN_DIR'], $_SERVER['PHP_INI_SCAN_DIR']);
})();
