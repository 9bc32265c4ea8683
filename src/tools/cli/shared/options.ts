/** Argument parsers and help texts that several commands share. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { settings } from '../../../ground/settings/index.ts'
import type { SettingRow } from '../../../ground/settings/table.ts'

/** Rejects an empty argument, which usually comes from an unset variable of a script. */
export function nonEmpty(value: string): string {
  if (value.trim() === '') throw new InvalidArgumentError('It must not be empty.')
  return value
}

/** Collects the values of an option that may be repeated. */
export const collect = (value: string, before: readonly string[] = []): string[] => [
  ...before,
  nonEmpty(value),
]

/** Rejects other schemes, which would be read as a host name. */
export function natsServer(value: string): string {
  const scheme = /^(.*):\/\//.exec(nonEmpty(value))?.[1] ?? 'nats'
  if (scheme === 'nats' || scheme === 'tls') return value
  throw new InvalidArgumentError('It is not nats://HOST:PORT, or tls://HOST:PORT.')
}

export const manifests = (
  help = 'manifest file or folder, - for standard input; may be repeated',
) => new Option('-f, --file <path>', help).argParser(collect)

/** The option for the port of a gateway on this machine. */
export const port = (help: string) => new Option('--port <port>', help).argParser(readPort)

function readPort(text: string): number {
  const number = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (number < 1 || number > 65_535) throw new InvalidArgumentError('expected a port')
  return number
}

/** Adds the options for the key of clients of a gateway on this machine. */
export function clientKeyOptions(command: Command, when: string): Command {
  return command
    .addOption(
      new Option(
        '--client-key-env <variable>',
        'environment variable with the key of clients',
      ).default(undefined, `a new key ${when}`),
    )
    .option('--no-client-key', 'let clients in without a key')
}

export const outputFormat = () =>
  new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text')

export const manifestFormat = () =>
  new Option('-o, --output <format>', 'output format').choices(['yaml', 'json']).default('yaml')

const { form: pathRules, default: defaultPathRule } = settings.ambiguousPaths

export const ambiguousPaths = () =>
  new Option(
    '--ambiguous-paths <value>',
    `how the proxy treats ambiguous paths: ${pathRules} (default: ${defaultPathRule})`,
  )

export const modelCatalogs = () =>
  new Option(
    '--model-catalog <path>',
    'catalog of models in JSON, in addition to the shipped one; may be repeated',
  ).argParser(collect)

/** Adds the flags that describe one request. */
export function addRequestOptions(command: Command): Command {
  return command
    .option('--host <host>', 'host of the request')
    .option('--path <path>', 'path of the request, with its query')
    .option('--method <method>', 'method of the request')
    .option('--header <field>', "header of the request, 'name: value'; may be repeated", collect)
    .option('--port <port>', 'listener port (default: all ports)')
    .addOption(ambiguousPaths())
}

/** The folder of `--record-dir`, which `--requests` names as well. */
export interface RecordFolder {
  readonly recordDir?: string
}

export const recordDir = (help = 'folder with decision records') =>
  new Option('--record-dir <path>', help).argParser(nonEmpty)

/** Another name of `--record-dir`, under which records are requests to compare or to simulate. */
export const requestsOption = (help: string) =>
  new Option('--requests <path>', help).argParser(nonEmpty).conflicts('recordDir')

type SettingOption = Pick<
  SettingRow<unknown>,
  'flag' | 'isList' | 'doc' | 'form' | 'default' | 'defaultText' | 'env'
>

/** The help text of a setting with a flag; it has the content of the setting's row in docs/settings.md. */
function settingHelp({ doc, form, default: value, defaultText, env }: SettingOption): string {
  return `${doc} (${form}; default: ${defaultText ?? value}; ${env})`
}

/** Joins the values of a list option that is repeated, so that none of them is lost. */
const join = (value: string, before?: string): string =>
  before === undefined ? value : `${before},${value}`

/** Adds an option for each setting that has a flag. */
export function addSettings(
  command: Command,
  table: Readonly<Record<string, SettingOption>>,
): Command {
  for (const setting of Object.values(table)) {
    if (setting.flag === undefined) continue
    const option = new Option(`--${setting.flag} <value>`, settingHelp(setting))
    command.addOption(setting.isList === true ? option.argParser(join) : option)
  }
  return command
}

/** Adds `help [command...]` in place of the library's, which shows no error for an unknown command. */
export function addHelp(group: Command): void {
  group.helpCommand(false)
  group
    .command('help [command...]')
    .description('display help for command')
    .action((names: readonly string[]) => printHelp(group, names))
}

function printHelp(group: Command, [name, ...rest]: readonly string[]): void {
  if (name === undefined || group.commands.length === 0) group.help()
  const named = group.commands.find((command) => command.name() === name)
  if (named !== undefined) printHelp(named, rest)
  // Parsing the unknown name fails with the usual error, which suggests a similar command.
  else group.parse([name], { from: 'user' })
}

/** Ends errors of usage with the command that prints the help, instead of the help itself. */
export function hintAtHelp(command: Command, parents = ''): void {
  const name = `${parents}${command.name()}`
  command.showHelpAfterError(`see ${name} --help`)
  for (const part of command.commands) hintAtHelp(part, `${name} `)
}

/** The option for the reason of a change, which the event log or the ledger records. */
export const reason = (isRequired = false): Option =>
  new Option('--reason <text>', 'reason, recorded in the log')
    .argParser(nonEmpty)
    .makeOptionMandatory(isRequired)

/** The option for the author of a change; `defaultAuthor` if omitted. */
export const author = (): Option =>
  new Option(
    '--author <name>',
    'author, recorded in the log (default: the user of this process)',
  ).argParser(nonEmpty)
