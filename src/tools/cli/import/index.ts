/** The command `sluice import` and its options. */
import type { Command } from 'commander'
import { manifests } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { ImportOptions } from './import.ts'

export function addImport(program: Command): void {
  program
    .command('import')
    .description(
      'convert the configuration of another gateway to manifests; exit with 3 if a protection would be lost, 4 if a route would be lost, 5 or 6 if a limit would be looser or stricter',
    )
    .option(
      '--from <source>',
      'agentgateway, envoy-gateway, istio, kong, litellm, nginx-ingress, portkey or traefik (default: detected)',
    )
    .addOption(
      manifests(
        'configuration file or folder, - for standard input; may be repeated',
      ).makeOptionMandatory(),
    )
    .option('-o, --output <folder>', 'folder for the manifests, - for standard output', '-')
    .option(
      '--report <path>',
      'write the report to this file, as JSON if its name ends with .json (default: standard error)',
    )
    .option(
      '--allow-loss',
      'write the manifests even if protections are lost; implies the other --allow options',
    )
    .option('--allow-dropped', 'write the manifests even if routes are lost')
    .option('--allow-looser', 'write the manifests even if limits become looser')
    .option('--allow-stricter', 'write the manifests even if limits become stricter')
    .option('--namespace <namespace>', 'namespace of the created objects')
    .option('--port <port>', 'port of the created Gateway (default: the port of the source)')
    .action(async (options: ImportOptions) => {
      const { importConfiguration } = await import('./import.ts')
      process.exitCode = await importConfiguration(options, processOutput)
    })
}
