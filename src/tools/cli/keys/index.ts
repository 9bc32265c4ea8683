/** The commands `sluice keys …`. */
import { type Command, Option } from 'commander'
import { addLogFile } from '../recording/options.ts'
import {
  addHelp,
  author,
  collect,
  natsServer,
  nonEmpty,
  outputFormat,
  reason,
  recordDir,
} from '../shared/options.ts'
import { type OutputFormat, print, printNow, processOutput, UsageError } from '../shared/output.ts'
import type { DynamicChange } from './dynamic-keys.ts'
import type { ImportOptions } from './import-keys.ts'
import type { CreateOptions, KeyChange, RotateOptions } from './keys.ts'
import type { NewConfigMap } from './keys-file.ts'

/** Where keys are: in a file, or in the event log. */
interface Place extends DynamicChange {
  readonly file?: string
  readonly dynamic?: true
}

interface Common extends Place {
  readonly output: OutputFormat
}

interface ListOptions extends Common {
  readonly recordDir?: string
  readonly dimension: string
}

const prefix = () =>
  new Option('--prefix <text>', 'prefix of the key').default('sk-').argParser(nonEmpty)

/** Adds the options for the place of keys. */
const addPlace = (command: Command, namespace = 'namespace of dynamic keys'): Command =>
  addLogFile(
    command
      .option('--file <path>', 'file with the ConfigMap of the keys')
      .addOption(
        new Option(
          '--dynamic',
          'keep keys in the event log of the gateway in place of a file; they take effect within a second',
        ).conflicts('file'),
      )
      .option('-n, --namespace <namespace>', `${namespace} (default: "default")`),
    ['file', 'nats'],
  ).option('--nats <url>', 'event log on a NATS server, for dynamic keys', natsServer)

/** Adds also who changes dynamic keys, and why. */
const addChange = (command: Command, namespace?: string): Command =>
  addPlace(command, namespace).addOption(reason()).addOption(author()).addOption(outputFormat())

/** @throws UsageError if no file is named */
function fileOf({ file }: Place): string {
  if (file !== undefined) return file
  throw new UsageError('name the file of the keys (--file), or use --dynamic')
}

/** Makes a change. A result that is delivered is printed before the change is stored. */
async function change(
  options: Common,
  { change: work, result }: KeyChange,
  delivery?: { readonly create?: NewConfigMap },
): Promise<void> {
  const deliver = delivery && (() => printNow(result, options.output))
  if (options.dynamic === true) {
    const { changeDynamicKeys } = await import('./dynamic-keys.ts')
    await changeDynamicKeys(options, processOutput.report, work, deliver)
  } else {
    const { changeKeys } = await import('./keys-file.ts')
    changeKeys(fileOf(options), work, delivery?.create, deliver)
  }
  if (deliver === undefined) await print(result, options.output)
}

export function addKeys(program: Command): void {
  const group = program
    .command('keys')
    .description(
      'create, rotate and list API keys of clients; files and the event log get hashes only',
    )
  addCreate(group)
  addRotate(group)
  addList(group)
  addChanges(group)
  addImportKeys(group)
  addHelp(group)
}

/** Options for the ConfigMap of a file that does not exist yet. */
function newConfigMap(command: Command): Command {
  return addChange(command, 'namespace of a new ConfigMap, or of dynamic keys')
    .option('--config-map <name>', 'name of a new ConfigMap', nonEmpty, 'api-keys')
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
      .description('create a key and print it once; creates the file if needed'),
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
    .action(async (name: string, options: CreateOptions & Common) => {
      const { createdKey, newConfigMapOf } = await import('./keys.ts')
      await change(options, createdKey(name, options), { create: newConfigMapOf(options) })
    })
}

function addRotate(group: Command): void {
  addChange(group.command('rotate <name>').description('replace a key and print the new one once'))
    .option(
      '--overlap <when>',
      'until when the previous key is accepted: `24h` from now, or a time',
      '24h',
    )
    .option('--expires <when>', 'end of the new key (default: that of the previous one)')
    .addOption(prefix())
    .action(async (name: string, options: RotateOptions & Common) => {
      const { rotatedKey } = await import('./keys.ts')
      await change(options, rotatedKey(name, options), {})
    })
}

function addList(group: Command): void {
  addPlace(
    group
      .command('list')
      .description(
        'list the keys, without the keys themselves; with --dynamic also those of ConfigMaps of the namespace',
      ),
  )
    .addOption(outputFormat())
    .addOption(recordDir('also print when keys were used, from this folder with decision records'))
    .option(
      '--dimension <name>',
      'dimension of the identity that has the name of the key',
      'principal',
    )
    .action(async (options: ListOptions) => {
      const { listedKeys } = await import('./keys.ts')
      const { output, recordDir: folder, dimension } = options
      const found = await entriesOf(options)
      const place = options.dynamic === true ? 'the event log' : fileOf(options)
      if (folder === undefined) return print(listedKeys(found, place), output)
      const { usageOfKeys } = await import('./key-usage.ts')
      const { report } = processOutput
      const usages = await usageOfKeys({ recordDir: folder, dimension }, report)
      if (usages.isSample) {
        report('Not all requests were recorded, so keys may have been used more. Set --record all.')
      }
      await print(listedKeys(found, place, usages), output)
    })
}

async function entriesOf(options: Place) {
  if (options.dynamic === true) {
    const { dynamicAndOtherKeys } = await import('./dynamic-keys.ts')
    return dynamicAndOtherKeys(options, processOutput.report)
  }
  const { readKeys } = await import('./keys-file.ts')
  return readKeys(fileOf(options)).entries()
}

function addChanges(group: Command): void {
  const command = (name: string, description: string) =>
    addChange(group.command(name).description(description))
  command('disable <name>', 'refuse a key until it is enabled again').action(
    async (name: string, options: Common) => {
      const { disabledKey } = await import('./keys.ts')
      await change(options, disabledKey(name, true))
    },
  )
  command('enable <name>', 'accept a disabled key again').action(
    async (name: string, options: Common) => {
      const { disabledKey } = await import('./keys.ts')
      await change(options, disabledKey(name, false))
    },
  )
  command('delete <name>', 'delete a key').action(async (name: string, options: Common) => {
    const { deletedKey } = await import('./keys.ts')
    await change(options, deletedKey(name))
  })
}

function addImportKeys(group: Command): void {
  newConfigMap(
    group
      .command('import <export>')
      .description('add keys from an export that has their hashes')
      .addOption(new Option('--from <product>', 'format').choices(['litellm']).default('litellm')),
  )
    .option('--allow-loss', 'add also keys whose budgets or limits are lost')
    .option('--budgets <path>', 'new file for the budgets of the keys, as GatewayBudgets', nonEmpty)
    .option('--budget-target <kind/name>', 'the requests that they count', 'Gateway/gateway')
    .action(async (path: string, options: ImportOptions & Common) => {
      const { importedKeys, importKeys } = await import('./import-keys.ts')
      if (options.dynamic !== true) {
        const file = fileOf(options)
        return print(importKeys(path, { ...options, file }, processOutput), options.output)
      }
      const { changeDynamicKeys } = await import('./dynamic-keys.ts')
      const { add, resultOf } = importedKeys(path, options, processOutput)
      const additions = await changeDynamicKeys(options, processOutput.report, add)
      await print(resultOf(additions, 'the event log'), options.output)
    })
}
