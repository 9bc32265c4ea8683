/** The command `sluice bisect` and its options. */
import type { Command } from 'commander'
import { addOfflineOptions, type OfflineOptions } from '../recording/options.ts'
import { print, processOutput } from '../shared/output.ts'

export function addBisect(program: Command): void {
  addOfflineOptions(
    program.command('bisect').description('find the event that made an expectation fail'),
  )
    .requiredOption('--expect <text>', "such as 'HTTPRoute/default/app Accepted=True'")
    .action(async (options: OfflineOptions & { expect: string }) => {
      const { bisect } = await import('./bisect.ts')
      await print(bisect(options, processOutput.report), options.output)
    })
}
