/** The command `sluice stdio` and its options. */
import type { Command } from 'commander'
import { nonEmpty } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { StdioOptions } from './stdio.ts'

export function addStdio(program: Command): void {
  program
    .command('stdio')
    .description('run commands as MCP servers for the proxy on the same machine')
    .option('--address <host:port>', 'loopback address for the proxy', nonEmpty, '127.0.0.1:0')
    .option('--token-file <path>', 'write the token for the proxy to this file', nonEmpty)
    .option('--user <uid:gid>', 'user and group id of the servers', nonEmpty)
    .action(async (options: StdioOptions) => {
      const { stdio } = await import('./stdio.ts')
      process.exitCode = await stdio(options, processOutput)
    })
}
