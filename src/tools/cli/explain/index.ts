/** The command `sluice explain` and its options. */
import type { Command } from 'commander'
import { addOfflineOptions } from '../recording/options.ts'
import { addRequestOptions, collect, nonEmpty, recordDir } from '../shared/options.ts'
import { print, processOutput } from '../shared/output.ts'
import type { ExplainOptions } from './explain.ts'

export function addExplain(program: Command): void {
  const command = program
    .command('explain <what> [name...]')
    .description(
      'KIND NAMESPACE/NAME: why an object has its conditions; condition KIND/NAMESPACE/NAME: which events changed them; request: which route and policies apply to a request, or how a recorded one was decided; tool NAME: since when MCP servers list a tool, prompt or resource, and which routes and rules lead clients to it; agent NAMESPACE/NAME [METHOD]: which methods of an A2A agent the rules allow, for each route; providers [NAMESPACE/NAME]: which model providers running proxies have ejected, and why',
    )
  addRequestOptions(addOfflineOptions(command))
    .option(
      '--id <id>',
      'explain the recorded request with this x-request-id; --host, --path, --method, --header and --port are not used',
      nonEmpty,
    )
    .addOption(recordDir())
    .option('--stats <address>', 'stats address of a running proxy; may be repeated', collect)
    .action(async (what: string, names: string[], options: ExplainOptions) => {
      const { explain } = await import('./explain.ts')
      await print(explain(what, names, options, processOutput.report), options.output)
    })
}
