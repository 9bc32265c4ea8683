/** The command `sluice simulate` and its options. */
import { type Command, Option } from 'commander'
import { addOfflineOptions } from '../recording/options.ts'
import {
  addRequestOptions,
  collect,
  type RecordFolder,
  recordDir,
  requestsOption,
} from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { SimulateOptions } from './simulate.ts'

export function addSimulate(program: Command): void {
  const command = program
    .command('simulate')
    .description(
      'show what a proxy would decide about requests; exit with 0 if all are decided, 3 if some are undecided',
    )
  addRequestOptions(addOfflineOptions(command))
    .addOption(new Option('--scheme <scheme>', 'scheme of the request').choices(['http', 'https']))
    .option('--source <address>', 'client address of the request')
    .option('--overlay', 'add the objects of -f to the state of the log')
    .option('--curl <command>', 'the request of a curl command line')
    .option('--har <path>', 'the requests of a HAR file')
    .addOption(recordDir())
    .addOption(requestsOption('access log in JSON, or the same as --record-dir'))
    .option(
      '--assume <verdict>',
      "verdict of a step that cannot be computed, such as 'traffic.extAuth=pass', 'traffic.extAuth=403' or 'backend=NAMESPACE/NAME'; may be repeated",
      collect,
    )
    .action(async ({ recordDir: folder, ...options }: SimulateOptions & RecordFolder) => {
      const { simulate } = await import('./simulate.ts')
      const requests = folder ?? options.requests
      const given = { ...options, ...(requests && { requests }) }
      process.exitCode = await simulate(given, processOutput)
    })
}
