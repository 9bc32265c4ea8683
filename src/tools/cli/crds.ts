/** The command `sluice crds`. */
import type { Command } from 'commander'
import { manifestFormat } from './shared/options.ts'
import { type ManifestFormat, print } from './shared/output.ts'

export function addCrds(program: Command): void {
  program
    .command('crds')
    .description('print the custom resource definitions')
    .addOption(manifestFormat())
    .action(async (options: { output: ManifestFormat }) => {
      const { crds } = await import('../../control/api/crds.ts')
      const { manifestsResult } = await import('./shared/manifests.ts')
      await print(manifestsResult(crds()), options.output)
    })
}
