/** The commands `sluice tools …`. */
import { type Command, Option } from 'commander'
import { mcpLists } from '../../../ground/model/mcp-lists.ts'
import { addLogFile } from '../recording/options.ts'
import {
  addHelp,
  author,
  collect,
  natsServer,
  nonEmpty,
  outputFormat,
  reason,
} from '../shared/options.ts'
import { type OutputFormat, print, processOutput } from '../shared/output.ts'
import type { ApproveOptions } from './approve.ts'
import type { DiffOptions } from './diff.ts'
import type { ListOptions } from './list.ts'

type Printed<Options> = Options & { readonly output: OutputFormat }

export function addTools(program: Command): void {
  const group = program
    .command('tools')
    .description(
      'show what MCP servers list (tools, prompts, resources) and have listed, and approve changes',
    )
  addSource(
    group
      .command('list', { isDefault: true })
      .description('print every item with its version; exit with 1 if there is none'),
  )
    .option('--backend <name>', 'only this GatewayBackend (namespace/name)', nonEmpty)
    .action(async (options: Printed<ListOptions>) => {
      const { listItems } = await import('./list.ts')
      await print(listItems(options, processOutput.report), options.output)
    })
  addSource(
    group
      .command('diff')
      .description(
        'print what is not approved, compared with what is, with hidden characters shown; exit with 1 if there is a difference',
      ),
  )
    .option('--backend <name>', 'only this GatewayBackend (namespace/name)', nonEmpty)
    .option('--from <position|time>', 'print every change after this position or time instead')
    .action(async (options: Printed<DiffOptions>) => {
      const { diffItems } = await import('./diff.ts')
      await print(diffItems(options, processOutput.report), options.output)
    })
  addSource(
    group
      .command('approve <backend>')
      .description(
        'approve the versions that a GatewayBackend (namespace/name) lists now, or with --at those that it listed then',
      ),
  )
    .option('--item <name>', 'only this item; may be repeated', collect)
    .option('--revoke', 'take approvals back instead')
    .addOption(reason(true))
    .addOption(author())
    .action(async (backend: string, options: Printed<ApproveOptions>) => {
      const { approveItems } = await import('./approve.ts')
      await print(approveItems(backend, options, processOutput.report), options.output)
    })
  addHelp(group)
}

/** Adds the options that name the log, and those that choose items. */
const addSource = (command: Command): Command =>
  addLogFile(command)
    .option('--nats <url>', 'event log on a NATS server', natsServer)
    .option('--at <position|time>', 'ignore events after this position or time')
    .option('--target <name>', 'only this target', nonEmpty)
    .addOption(new Option('--list <list>', 'only this list').choices([...mcpLists]))
    .addOption(outputFormat())
