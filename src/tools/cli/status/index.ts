/** The command `sluice status` and its options. */
import type { Command } from 'commander'
import { addOfflineOptions, type OfflineOptions } from '../recording/options.ts'
import { print, processOutput } from '../shared/output.ts'
import type { StatusOptions } from './status.ts'

export function addStatus(program: Command): void {
  addOfflineOptions(program.command('status').description('show the conditions of every object'))
    .option(
      '--strict',
      'exit with 1 if a reference leads to an object that is not in the files (-f)',
    )
    .action(async (options: OfflineOptions & StatusOptions) => {
      const { status } = await import('./status.ts')
      await print(status(options, processOutput.report), options.output)
    })
}
