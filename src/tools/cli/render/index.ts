/** The command `sluice render` and its options. */
import type { Command } from 'commander'
import { manifestFormat, manifests } from '../shared/options.ts'
import { type ManifestFormat, print, processOutput } from '../shared/output.ts'
import type { RenderOptions } from './render.ts'

export function addRender(program: Command): void {
  program
    .command('render')
    .description('print the objects that the controller would deploy for the Gateways')
    .addOption(manifests().makeOptionMandatory())
    .option('--gateway <namespace/name>', 'only this Gateway')
    .option('--namespace <namespace>', 'namespace of the controller')
    .option(
      '--xds-ca-file <path>',
      'certificate authorities that verify the controller (enables TLS)',
    )
    .addOption(manifestFormat())
    .action(async (options: RenderOptions & { output: ManifestFormat }) => {
      const { render } = await import('./render.ts')
      await print(render(options, processOutput.report), options.output)
    })
}
