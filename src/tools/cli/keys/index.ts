/** The commands `sluice keys …`. */
import { type Command, Option } from 'commander'
import { addHelp, collect, nonEmpty, outputFormat, recordDir } from '../shared/options.ts'
import { type OutputFormat, print, printNow, processOutput } from '../shared/output.ts'
import type { ImportOptions } from './import-keys.ts'
import type { CreateOptions, RotateOptions } from './keys.ts'

interface Common {
  readonly file: string
  readonly output: OutputFormat
}

interface ListOptions extends Common {
  readonly recordDir?: string
  readonly dimension: string
}

const keysFile = () =>
  new Option('--file <path>', 'file with the ConfigMap of the keys').makeOptionMandatory()
const prefix = () =>
  new Option('--prefix <text>', 'prefix of the key').default('sk-').argParser(nonEmpty)

export function addKeys(program: Command): void {
  const group = program
    .command('keys')
    .description('create, rotate and list API keys of clients; files get hashes only')
  addCreate(group)
  addRotate(group)
  addChanges(group)
  addImportKeys(group)
  addHelp(group)
}

/** Options for the ConfigMap of a file that does not exist yet. */
function newConfigMap(command: Command): Command {
  return command
    .option('--config-map <name>', 'name of a new ConfigMap', nonEmpty, 'api-keys')
    .option('-n, --namespace <namespace>', 'namespace of a new ConfigMap')
    .addOption(
      new Option('--label <name=value>', 'additional label of a new ConfigMap; may be repeated')
        .argParser(collect)
        .default(['sluice.dev/api-keys=true']),
    )
}

function addCreate(group: Command): void {
  newConfigMap(
    group
      .command('create <name>')
      .description('create a key and print it once; creates the file if needed')
      .addOption(keysFile()),
  )
    .option('--owner <owner>', 'metadata `owner`', nonEmpty)
    .option('--team <team>', 'metadata `team`', nonEmpty)
    .option('--metadata <name=value>', 'metadata for expressions; may be repeated', collect)
    .option('--model <name>', 'model that the key may use, or `gpt-*`; may be repeated', collect)
    .option(
      '--route <namespace/name>',
      'route that the key may use, or `namespace/*`; may be repeated',
      collect,
    )
    .option('--expires <when>', '`90d`, `24h` or `30m` from now, or a date or time of RFC 3339')
    .addOption(prefix())
    .addOption(outputFormat())
    .action(async (name: string, options: CreateOptions & Common) => {
      const { createKey } = await import('./keys.ts')
      createKey(name, options, (result) => printNow(result, options.output))
    })
}

function addRotate(group: Command): void {
  group
    .command('rotate <name>')
    .description('replace a key and print the new one once')
    .addOption(keysFile())
    .option(
      '--overlap <when>',
      'until when the previous key is accepted: `24h` from now, or a time',
      '24h',
    )
    .option('--expires <when>', 'end of the new key (default: that of the previous one)')
    .addOption(prefix())
    .addOption(outputFormat())
    .action(async (name: string, options: RotateOptions & Common) => {
      const { rotateKey } = await import('./keys.ts')
      rotateKey(name, options, (result) => printNow(result, options.output))
    })
}

function addChanges(group: Command): void {
  const change = (name: string, description: string) =>
    group.command(name).description(description).addOption(keysFile()).addOption(outputFormat())
  change('list', 'list the keys, without the keys themselves')
    .addOption(recordDir('also print when keys were used, from this folder with decision records'))
    .option(
      '--dimension <name>',
      'dimension of the identity that has the name of the key',
      'principal',
    )
    .action(async ({ file, output, recordDir: folder, dimension }: ListOptions) => {
      const { listKeys } = await import('./keys.ts')
      if (folder === undefined) return print(listKeys(file), output)
      const { usageOfKeys } = await import('./key-usage.ts')
      const { report } = processOutput
      const usages = await usageOfKeys({ recordDir: folder, dimension }, report)
      if (usages.isSample) {
        report('Not all requests were recorded, so keys may have been used more. Set --record all.')
      }
      await print(listKeys(file, usages), output)
    })
  change('disable <name>', 'refuse a key until it is enabled again').action(
    async (name: string, { file, output }: Common) => {
      const { setDisabled } = await import('./keys.ts')
      await print(setDisabled(name, file, true), output)
    },
  )
  change('enable <name>', 'accept a disabled key again').action(
    async (name: string, { file, output }: Common) => {
      const { setDisabled } = await import('./keys.ts')
      await print(setDisabled(name, file, false), output)
    },
  )
  change('delete <name>', 'delete a key').action(async (name: string, { file, output }: Common) => {
    const { deleteKey } = await import('./keys.ts')
    await print(deleteKey(name, file), output)
  })
}

function addImportKeys(group: Command): void {
  newConfigMap(
    group
      .command('import <export>')
      .description('add keys from an export that has their hashes')
      .addOption(new Option('--from <product>', 'format').choices(['litellm']).default('litellm'))
      .addOption(keysFile()),
  )
    .option('--allow-loss', 'add also keys whose budgets or limits are lost')
    .option('--budgets <path>', 'new file for the budgets of the keys, as GatewayBudgets', nonEmpty)
    .option('--budget-target <kind/name>', 'the requests that they count', 'Gateway/gateway')
    .addOption(outputFormat())
    .action(async (path: string, options: ImportOptions & Common) => {
      const { importKeys } = await import('./import-keys.ts')
      await print(importKeys(path, options, processOutput), options.output)
    })
}
