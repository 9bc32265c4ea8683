/** The commands `sluice budgets …`. */
import { type Command, Option } from 'commander'
import { addLogFile } from '../recording/options.ts'
import { addHelp, author, natsServer, nonEmpty, outputFormat, reason } from '../shared/options.ts'
import { type OutputFormat, print, printNow, processOutput, UsageError } from '../shared/output.ts'
import type { AdjustOptions } from './adjust.ts'
import type { EraseOptions } from './erase.ts'
import type { ExplainBudgetOptions } from './explain.ts'
import type { LedgerSource } from './ledger.ts'
import type { ListOptions } from './list.ts'
import type { PurgeOptions } from './purge.ts'

type Printed<Options> = Options & { readonly output: OutputFormat }

export function addBudgets(program: Command): void {
  const group = program
    .command('budgets')
    .description(
      'show, explain, adjust and verify the balances of GatewayBudgets, and shorten their ledger',
    )
  addList(group)
  addExplainBudget(group)
  addAdjust(group)
  addVerify(group)
  addPurge(group)
  addErase(group)
  addHelp(group)
}

/** Adds the options that name the ledger: it is beside the event log. */
const addSource = (command: Command): Command =>
  addLogFile(command).option('--nats <url>', 'event log and ledger on a NATS server', natsServer)

function addList(group: Command): void {
  addSource(
    group
      .command('list')
      .description('print what is spent of every budget; exit with 1 if there is none'),
  )
    .option('--values', 'print a row for each value of `each`')
    .addOption(
      new Option('-o, --output <format>', 'output format')
        .choices(['text', 'json', 'csv'])
        .default('text'),
    )
    .action(async (options: ListOptions) => {
      const { listBudgets } = await import('./list.ts')
      process.exitCode = await listBudgets(options, processOutput)
    })
}

const valueOption = (help: string) => new Option('--value <value>', help)

function addExplainBudget(group: Command): void {
  addSource(
    group
      .command('explain <name>')
      .description(
        'print who has spent a budget (namespace/name), which proxies hold allowances, and its adjustments',
      ),
  )
    .addOption(valueOption('only this value of `each`; empty for requests without one'))
    .addOption(outputFormat())
    .action(async (name: string, options: Printed<ExplainBudgetOptions>) => {
      const { explainBudget } = await import('./explain.ts')
      await print(explainBudget(name, options, processOutput.report), options.output)
    })
}

function addAdjust(group: Command): void {
  addSource(
    group
      .command('adjust <name>')
      .description(
        'change the amount of a budget for the current window, also while gateways run; the change is an event of the ledger',
      ),
  )
    .addOption(valueOption('value of `each`; empty for requests without one'))
    .requiredOption('--by <amount>', 'what is added, such as 12.50, or taken away, such as -5')
    .addOption(reason(true))
    .addOption(author())
    .addOption(outputFormat())
    .action(async (name: string, options: Printed<AdjustOptions>) => {
      const { adjust } = await import('./adjust.ts')
      const result = await adjust(name, options, processOutput.report)
      try {
        printNow(result, options.output)
      } catch (error) {
        // A user who runs the command again would change the amount twice.
        throw new UsageError(`the amount was changed, but ${(error as Error).message}`)
      }
    })
}

function addVerify(group: Command): void {
  addSource(
    group
      .command('verify')
      .description(
        'fold all events of the ledger again, and compare with its snapshots; exit with 1 if something differs or is missing',
      ),
  )
    .addOption(outputFormat())
    .action(async (options: Printed<LedgerSource>) => {
      const { verifyLedger } = await import('./verify.ts')
      await print(verifyLedger(options, processOutput.report), options.output)
    })
}

function addPurge(group: Command): void {
  addSource(
    group
      .command('purge')
      .description(
        'remove the events of the ledger before a time, also while gateways run; a snapshot keeps their sums',
      ),
  )
    .requiredOption('--before <time>', 'such as 90d or 2026-01-01', nonEmpty)
    .addOption(outputFormat())
    .action(async (options: Printed<PurgeOptions>) => {
      const { purge } = await import('./purge.ts')
      await print(purge(options, processOutput.report), options.output)
    })
}

function addErase(group: Command): void {
  addSource(
    group
      .command('erase')
      .description(
        'erase a value of `each`, such as the name of a person: its balances continue under a random name, and all earlier events are removed; exit with 1 if the ledger does not have it, unless --issuer is set',
      ),
  )
    .requiredOption('--account <value>', 'value to erase, in all budgets', nonEmpty)
    .option(
      '--issuer <url>',
      'also end the sessions and tokens that the user has now at this issuer, and remove the grants of the user at other services',
      nonEmpty,
    )
    .option(
      '--sub <subject>',
      'claim `sub` of the user, if it is not the account (default: --account)',
      nonEmpty,
    )
    .option('--for <duration>', 'how long sessions and tokens are refused, with --issuer', '30d')
    .option('--grant-store <place>', 'file with grants, or NATS servers (nats://…)', nonEmpty)
    .addOption(reason(true))
    .addOption(author())
    .addOption(outputFormat())
    .action(async (options: Printed<EraseOptions>) => {
      const { erase } = await import('./erase.ts')
      await print(erase(options, processOutput.report), options.output)
    })
}
