/** The command `sluice proxy` and its options. */
import type { Command } from 'commander'
import { settings } from '../../../ground/settings/index.ts'
import { remoteSettings } from '../../../ground/settings/remote.ts'
import { addSettings } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { ProxyFlags } from './proxy.ts'

export function addProxy(program: Command): void {
  const command = program
    .command('proxy')
    .description('run the proxy of one Gateway, configured by a controller')
  addSettings(command, { ...remoteSettings, ...settings }).action(async (flags: ProxyFlags) => {
    const { proxy } = await import('./proxy.ts')
    process.exitCode = await proxy(flags, processOutput)
  })
}
