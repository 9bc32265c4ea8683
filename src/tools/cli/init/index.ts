/** The command `sluice init` and its options. */
import { type Command, Option } from 'commander'
import { processOutput } from '../shared/output.ts'
import type { InitOptions } from './init.ts'

export function addInit(program: Command): void {
  program
    .command('init [folder]')
    .description('write a folder of manifests to begin with; asks five questions')
    .addOption(
      new Option('--serve <what>', 'what the gateway serves').choices(['http', 'ai', 'mcp']),
    )
    .option('--upstream <url|vendor>', 'where requests go, such as http://127.0.0.1:3000 or openai')
    .option('--port <port>', 'port of the gateway')
    .addOption(
      new Option('--key <answer>', 'whether clients need an API key').choices(['yes', 'no']),
    )
    .option('--limit <requests>', 'requests that each client may send in a minute; 0 is any number')
    .option('-y, --yes', 'ask nothing: take the defaults for what no option says')
    .action(async (folder: string | undefined, options: InitOptions) => {
      const { init } = await import('./init.ts')
      process.exitCode = await init(folder ?? 'gateway', options, processOutput)
    })
}
