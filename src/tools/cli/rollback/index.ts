/** The commands `sluice rollback` and `sluice freeze`. */
import { type Command, Option } from 'commander'
import type { OperatorChange } from '../recording/operator-change.ts'
import { addLogFile } from '../recording/options.ts'
import { author, collect, natsServer, nonEmpty, outputFormat, reason } from '../shared/options.ts'
import { type OutputFormat, print, processOutput, UsageError } from '../shared/output.ts'
import type { FreezeOptions, RollbackOptions } from './rollback.ts'

type Printed<Options> = Options & { readonly output: OutputFormat }

/** Options of both commands. */
const addPinOptions = (command: Command): Command =>
  addLogFile(command, ['nats'])
    .option('--nats <url>', 'event log on a NATS server', natsServer)
    .option(
      '--only <object>',
      'hold only this object, KIND/[NAMESPACE/]NAME; may be repeated',
      collect,
    )
    .option('--until <time>', 'lift the pin at this time (RFC 3339)', nonEmpty)
    .addOption(reason())
    .addOption(author())
    .addOption(outputFormat())

export function addRollback(program: Command): void {
  addPinOptions(
    program
      .command('rollback')
      .description(
        'put the configuration of an earlier moment in force, and hold it; without --to and --lift, print what is held',
      ),
  )
    .addOption(
      new Option(
        '--to <moment>',
        'position or time of the log, or `last-good`: the newest earlier configuration in which no condition reported a problem',
      ).argParser(nonEmpty),
    )
    .option('--until-changed', 'no longer hold an object once its manifest changes again')
    .addOption(
      new Option('--lift', 'put the newest configuration in force again').conflicts([
        'to',
        'only',
        'until',
        'untilChanged',
      ]),
    )
    .action(async (options: Printed<RollbackOptions & OperatorChange & { lift?: true }>) => {
      const { lift, rollback, shownPin } = await import('./rollback.ts')
      const { report } = processOutput
      const { to, only, until, untilChanged } = options
      if (to === undefined && (only ?? until ?? untilChanged) !== undefined) {
        throw new UsageError('--only, --until and --until-changed need --to')
      }
      if (options.lift === true) await print(lift(options, report), options.output)
      else if (to === undefined) await print(shownPin(options, report), options.output)
      else await print(rollback({ ...options, to }, report), options.output)
    })
}

export function addFreeze(program: Command): void {
  addPinOptions(
    program
      .command('freeze')
      .description(
        'hold the configuration that is in force now: later changes wait for `sluice rollback --lift`, or for --until',
      ),
  ).action(async (options: Printed<FreezeOptions>) => {
    const { freeze } = await import('./rollback.ts')
    await print(freeze(options, processOutput.report), options.output)
  })
}
