/** The commands `sluice approve` and `sluice reject`. */
import type { Command } from 'commander'
import { addLogFile } from '../recording/options.ts'
import { author, natsServer, nonEmpty, outputFormat, reason } from '../shared/options.ts'
import { type OutputFormat, print, processOutput, UsageError } from '../shared/output.ts'
import type { ApproveOptions } from './approve.ts'

type Printed = ApproveOptions & { readonly output: OutputFormat }

const addChangeOptions = (command: Command): Command =>
  addLogFile(command, ['nats'])
    .option('--nats <url>', 'event log on a NATS server', natsServer)
    .addOption(reason())
    .addOption(author())
    .addOption(outputFormat())

export function addApprove(program: Command): void {
  addChangeOptions(
    program
      .command('approve')
      .description('let a held change take effect; without a position, list what waits and why')
      .argument('[position]', 'position of the held change', nonEmpty),
  )
    .option(
      '--emergency',
      'let everything that waits take effect: held, rejected, not judged yet or in a rollout, but not what was rolled back',
    )
    .action(async (position: string | undefined, options: Printed) => {
      const { approve, shownChanges } = await import('./approve.ts')
      const { report } = processOutput
      if (position !== undefined && options.emergency === true) {
        throw new UsageError(
          '--emergency excludes a position: it lets everything that waits take effect',
        )
      }
      const isShown = position === undefined && options.emergency !== true
      await print(
        isShown
          ? shownChanges(options, report)
          : approve({ ...options, ...(position !== undefined && { position }) }, report),
        options.output,
      )
    })
}

export function addReject(program: Command): void {
  addChangeOptions(
    program
      .command('reject')
      .description('reject a held change: it waits until its manifests change again')
      .argument('<position>', 'position of the held change', nonEmpty),
  ).action(async (position: string, options: Printed) => {
    const { reject } = await import('./approve.ts')
    await print(reject({ ...options, position }, processOutput.report), options.output)
  })
}
