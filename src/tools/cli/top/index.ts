/** The command `sluice top` and its options. */
import { type Command, Option } from 'commander'
import { collect, nonEmpty } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { TopOptions } from './top.ts'

export function addTop(program: Command): void {
  program
    .command('top')
    .description(
      'show what flows through a running gateway: rates, errors, latencies, tokens and cost; exit with 1 if nothing was counted',
    )
    .addOption(
      new Option('--admin <address>', 'admin address of the gateway')
        .argParser(nonEmpty)
        .default('localhost:15000'),
    )
    .option('--since <duration>', 'window that ends now, such as 1h', '1m')
    .addOption(
      new Option('--by <group>', 'only this group; may be repeated')
        .choices(['route', 'backend', 'model', 'key', 'tool', 'guard', 'target', 'rule'])
        .argParser(collect),
    )
    .option('--rows <number>', 'rows of each group; all others are summed up', '10')
    .option('--once', 'print once instead of refreshing every 2 seconds')
    .option('--json', 'print once, as JSON')
    .action(async (options: TopOptions) => {
      const { top } = await import('./top.ts')
      process.exitCode = await top(options, processOutput)
    })
}
