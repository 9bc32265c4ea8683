/** The command `sluice replay` and its options. */
import type { Command } from 'commander'
import { addOfflineOptions, type OfflineOptions } from '../recording/options.ts'
import { print, processOutput } from '../shared/output.ts'

export function addReplay(program: Command): void {
  const command = program
    .command('replay')
    .description('replay a recorded log; exit with 1 if a published state differs')
    .option('--all-snapshots', 'compare every snapshot of the log, instead of a few')
  addOfflineOptions(command).action(async (options: OfflineOptions) => {
    const { replayLog } = await import('./replay.ts')
    await print(replayLog(options, processOutput.report), options.output)
  })
}
