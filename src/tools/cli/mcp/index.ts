/** The commands of `sluice mcp` and their options. */
import { type Command, Option } from 'commander'
import { gatewayConsoleSettings } from '../../../ground/settings/console.ts'
import { settings } from '../../../ground/settings/index.ts'
import { protectionSettings } from '../../../ground/settings/protection.ts'
import { stdioSettings } from '../../../ground/settings/stdio.ts'
import type { RunOptions } from '../run/run.ts'
import {
  addHelp,
  addSettings,
  clientKeyOptions,
  collect,
  nonEmpty,
  port,
} from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { AddOptions, FileOption } from './mcp.ts'

const file = () =>
  new Option('-f, --file <path>', 'file with the manifests')
    .argParser(nonEmpty)
    .default(undefined, 'one in the state folder')

export function addMcp(program: Command): void {
  const group = program
    .command('mcp')
    .description('serve MCP servers at one address on this machine, without manifests')
  addAdd(group)
  group
    .command('list')
    .description('list the servers that were added')
    .addOption(file())
    .action(async (options: FileOption) => {
      const { listServers } = await import('./mcp.ts')
      process.exitCode = listServers(options, processOutput)
    })
  group
    .command('remove <name>')
    .description('remove a server; a running gateway follows at once')
    .addOption(file())
    .action(async (name: string, options: FileOption) => {
      const { removeServer } = await import('./mcp.ts')
      process.exitCode = removeServer(name, options, processOutput)
    })
  const running = group
    .command('run')
    .description('run the gateway with the servers that were added')
    .addOption(file())
  addSettings(running, {
    ...settings,
    ...protectionSettings,
    ...gatewayConsoleSettings,
    ...stdioSettings,
  }).action(async (options: FileOption & Omit<RunOptions, 'file'>) => {
    const { runServers } = await import('./mcp.ts')
    process.exitCode = await runServers(options, processOutput)
  })
  addHelp(group)
}

function addAdd(group: Command): void {
  const command = group
    .command('add <name> [url-or-command...]')
    .description(
      'add an MCP server by its URL, or by its command after --; a running gateway follows at once',
    )
    .option('--url <url>', 'URL of the server, such as https://mcp.example.com/mcp')
    .addOption(
      new Option('-t, --transport <transport>', 'transport of the server')
        .choices(['http', 'sse'])
        .default(undefined, 'http, or sse if the URL ends in /sse'),
    )
    .addOption(
      new Option('-H, --header <field>', "'Authorization: VALUE' that the server gets")
        .argParser(collect)
        .default([], 'none'),
    )
    .option(
      '--key-env <variable>',
      'environment variable of the gateway with the key of the server',
    )
    .addOption(port('port of the gateway, for the first server (default: 4001)'))
    .addOption(file())
    .option('--print', 'print the manifests, and change nothing')
  clientKeyOptions(command, 'with the first server').action(
    async (name: string, rest: readonly string[], options: AddOptions) => {
      const { addServer } = await import('./mcp.ts')
      process.exitCode = addServer(name, rest, options, processOutput)
    },
  )
}
