/** The command `sluice log` and its options. */
import type { Command } from 'commander'
import { addOfflineOptions, type OfflineOptions } from '../recording/options.ts'
import { print, processOutput } from '../shared/output.ts'

export function addLog(program: Command): void {
  addOfflineOptions(program.command('log').description('print the events of the log in order'))
    .option('--subject <text>', 'only events whose subject contains this text')
    .option('--snapshots', 'also print the stored snapshots (with -o json)')
    .action(async (options: OfflineOptions) => {
      const { exportLog, printLog } = await import('./log.ts')
      if (options.output === 'json') process.exitCode = await exportLog(options, processOutput)
      else await print(printLog(options, processOutput.report), options.output)
    })
}
