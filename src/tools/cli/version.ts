/** The command `sluice version`. */
import type { Command } from 'commander'
import { outputFormat } from './shared/options.ts'
import { type OutputFormat, processOutput } from './shared/output.ts'
import { packageVersion } from './shared/version.ts'

export function addVersion(program: Command): void {
  program
    .command('version')
    .description('print the version; JSON output includes the fold version')
    .addOption(outputFormat())
    .action(async (options: { output: OutputFormat }) => {
      const version = packageVersion()
      if (options.output === 'text') return processOutput.print(version)
      const { foldVersion } = await import('../../past/replay/index.ts')
      processOutput.print(JSON.stringify({ version, foldVersion }))
    })
}
