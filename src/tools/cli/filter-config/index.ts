/** The command `sluice filter-config` and its options. */
import { type Command, Option } from 'commander'
import { manifests } from '../shared/options.ts'
import { print, processOutput } from '../shared/output.ts'
import type { FilterConfigOptions } from './filter-config.ts'

export function addFilterConfig(program: Command): void {
  program
    .command('filter-config')
    .description(
      'print the configuration of sluice-filter.wasm, the filter for Envoy and Istio; exit with 1 if a protection would be lost',
    )
    .addOption(manifests('manifest file or folder; may be repeated').makeOptionMandatory())
    .option('--gateway <name>', 'only the routes of this Gateway (NAMESPACE/NAME)')
    .option(
      '--module <path>',
      'where Envoy finds the filter: a path or a URL',
      '/etc/envoy/sluice-filter.wasm',
    )
    .addOption(
      new Option(
        '-o, --output <format>',
        'json: the configuration alone; envoy: an HTTP filter; wasmplugin (Istio), envoygateway: manifests',
      )
        .choices(['json', 'envoy', 'wasmplugin', 'envoygateway'])
        .default('json'),
    )
    .action(async (options: FilterConfigOptions) => {
      const { filterConfig } = await import('./filter-config.ts')
      await print(filterConfig(options, processOutput.report), 'text')
    })
}
