/** The command `sluice rollout`. */
import type { Command } from 'commander'
import { addLogFile } from '../recording/options.ts'
import { author, natsServer, nonEmpty, outputFormat, reason } from '../shared/options.ts'
import { type OutputFormat, print, processOutput, UsageError } from '../shared/output.ts'
import type { RolloutOptions, Verb } from './rollout.ts'

type Printed = RolloutOptions & { readonly output: OutputFormat }

/** What a decision does, in the order of the help. */
const verbs: Readonly<Record<Verb, string>> = {
  pause: 'stay at the present step',
  resume: 'continue a paused rollout; its step begins again',
  abort: 'take the change back from the proxies that have it',
  finish: 'deliver the change to all proxies at once, even if it was rolled back',
}

export function addRollout(program: Command): void {
  const command = program
    .command('rollout')
    .description('show the changes that are delivered in steps, or decide about them')
  const add = (one: Command) =>
    addLogFile(one, ['nats'])
      .option('--nats <url>', 'event log on a NATS server', natsServer)
      .addOption(outputFormat())
  add(
    command
      .command('status', { isDefault: true })
      .description('list the rollouts under way, and those that were rolled back')
      .argument('[position]', 'position of one rollout', nonEmpty)
      .allowExcessArguments()
      .allowUnknownOption(),
  ).action(async (position: string | undefined, options: Printed, status: Command) => {
    refuseOthers(position, status.args)
    const { shownRollouts } = await import('./rollout.ts')
    await print(shownRollouts(position, options, processOutput.report), options.output)
  })
  for (const [verb, about] of Object.entries(verbs)) {
    add(
      command
        .command(verb)
        .description(about)
        .argument('[position]', 'position of the rollout (default: the one under way)', nonEmpty),
    )
      .addOption(reason())
      .addOption(author())
      .action(async (position: string | undefined, options: Printed) => {
        const { decideRollout } = await import('./rollout.ts')
        const decision = decideRollout(verb as Verb, position, options, processOutput.report)
        await print(decision, options.output)
      })
  }
}

/** @throws UsageError if options precede the verb, which selects the command `status`, or if there are other arguments */
function refuseOthers(position: string | undefined, given: readonly string[]): void {
  if (position !== undefined && position in verbs) {
    throw new UsageError(
      `write options after the verb: sluice rollout ${position} ${given.slice(1).join(' ')} …`,
    )
  }
  const other = given.find((one, at) => at > 0 || one.startsWith('-'))
  if (other === undefined) return
  const what = other.startsWith('-') ? 'unknown option' : 'too many arguments:'
  throw new UsageError(`${what} '${other}'`)
}
