/** The command line. Each command is a function of its options and an output; see src/cli. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { DamagedEventError, UnknownEventTypeError } from '../events/index.ts'
import type { ProviderOptions } from './cli/explain-providers.ts'
import type { RequestOptions } from './cli/explain-request.ts'
import { addHelp, type SettingHelp, settingHelp } from './cli/help.ts'
import { addIdentityProvider } from './cli/idp/command.ts'
import type { OfflineOptions } from './cli/offline.ts'
import {
  exitCode,
  type OutputFormat,
  outliveReaders,
  processOutput as output,
  UsageError,
} from './cli/output.ts'
import type { RenderOptions } from './cli/render.ts'
import { packageVersion } from './cli/version.ts'
import { isAboutAddress } from './errors/listening.ts'
import { LogError } from './log/index.ts'
import { type ControllerSettingName, controllerSettings } from './settings/controller.ts'
import {
  type RemoteSettingName,
  remoteSettings,
  type SettingName,
  settings,
} from './settings/index.ts'

type ExplainOptions = RequestOptions & ProviderOptions
type Action<Options> = (options: Options) => Promise<number>

function perform<Options>(action: Action<Options>): (options: Options) => Promise<void> {
  return async (options) => {
    process.exitCode = await action(options)
  }
}

/** An empty text is what a script's unset variable gives, and never what was meant. */
function filled(value: string): string {
  if (value.trim() === '') throw new InvalidArgumentError('It is empty.')
  return value
}

/** Another scheme would be taken for the name of a host. */
function natsServer(value: string): string {
  const scheme = /^(.*):\/\//.exec(filled(value))?.[1] ?? 'nats'
  if (scheme === 'nats' || scheme === 'tls') return value
  throw new InvalidArgumentError('It is not nats://HOST:PORT, or tls://HOST:PORT.')
}

const collect = (value: string, before: readonly string[] = []): string[] => [...before, value]

const followed = () =>
  new Option('-f, --file <path>', 'manifest file or folder; may be repeated').argParser(collect)
const manifests = () =>
  new Option(
    '-f, --file <path>',
    'manifest file or folder, - for standard input; may be repeated',
  ).argParser(collect)
const format = () =>
  new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text')

/** Options of every command that looks at a state without running a gateway. */
function offline(command: Command): Command {
  return command
    .addOption(manifests())
    .option('--log-file <path>', 'event log file, or an export of one')
    .option('--nats <url>', 'event log on a NATS server', natsServer)
    .option('--at <position|time>', 'ignore events after this position or time')
    .addOption(format())
}

type Offline = OfflineOptions & { readonly output: OutputFormat }

const program = new Command('sluice')
  .description('Gateway for AI, MCP and HTTP traffic.')
  .version(packageVersion(), '-V, --version', 'print the version')
  .exitOverride()
  .showHelpAfterError()

const runCommand = program
  .command('run')
  .description('run a gateway from manifest files')
  .addOption(followed().makeOptionMandatory())
  .addOption(
    new Option('--log-file <path>', 'store the event log in this file')
      .argParser(filled)
      .conflicts(['ephemeral', 'nats']),
  )
  .addOption(
    new Option('--nats <url>', 'store the event log on a NATS server')
      .argParser(natsServer)
      .conflicts('ephemeral'),
  )
  .option('--ephemeral', 'store the event log in memory only')

type FlagName = SettingName | RemoteSettingName

/** The last one alone would drop, without a word, what the others refuse or trust. */
const join = (value: string, before?: string): string =>
  before === undefined ? value : `${before},${value}`

/** Adds an option for each setting that has a flag. */
function takeSettings(command: Command, table: Readonly<Record<string, SettingOption>>): void {
  for (const setting of Object.values(table)) {
    if (setting.flag === undefined) continue
    const option = new Option(`--${setting.flag} <value>`, settingHelp(setting))
    command.addOption(setting.isList === true ? option.argParser(join) : option)
  }
}

interface SettingOption extends SettingHelp {
  readonly flag?: string
  readonly isList?: true
}

/** The texts that were given, by name of the setting. */
function flagsOf(given: Readonly<Record<string, unknown>>): Partial<Record<FlagName, string>> {
  const flags: Partial<Record<FlagName, string>> = {}
  for (const name of Object.keys({ ...settings, ...remoteSettings }) as FlagName[]) {
    const value = given[name]
    if (typeof value === 'string') flags[name] = value
  }
  return flags
}

takeSettings(runCommand, settings)

runCommand.action(
  perform(async (given: Record<string, string> & { file: string[]; ephemeral?: boolean }) => {
    const { run } = await import('./cli/run.ts')
    const flags = flagsOf(given)
    const { file, logFile, nats, ephemeral } = given
    return run(
      {
        file,
        flags,
        ...(logFile && { logFile }),
        ...(nats && { nats }),
        ...(ephemeral && { ephemeral }),
      },
      output,
    )
  }),
)

const proxyCommand = program
  .command('proxy')
  .description('run the proxy of one Gateway, configured by a controller')
takeSettings(proxyCommand, remoteSettings)
takeSettings(proxyCommand, settings)
proxyCommand.action(
  perform(async (given: Record<string, string>) => {
    const { proxy } = await import('./cli/proxy.ts')
    return proxy({ flags: flagsOf(given) }, output)
  }),
)

program
  .command('validate')
  .description('check manifests; exit with 1 if an object is invalid')
  .addOption(manifests().makeOptionMandatory())
  .addOption(format())
  .action(
    perform(async ({ file, output: form }: { file: string[]; output: OutputFormat }) => {
      const { validate } = await import('./cli/validate.ts')
      return validate(file, form, output)
    }),
  )

offline(program.command('status').description('show the conditions of every object')).action(
  perform(async (options: Offline) => {
    const { status } = await import('./cli/status.ts')
    return status(options, options.output, output)
  }),
)

offline(program.command('log').description('print the events of the log in order'))
  .option('--subject <text>', 'only events whose subject contains this text')
  .action(
    perform(async (options: Offline) => {
      const { printLog } = await import('./cli/log.ts')
      return printLog(options, options.output, output)
    }),
  )

offline(
  program
    .command('replay')
    .description('replay a recorded log; exit with 1 if a published state differs'),
).action(
  perform(async (options: Offline) => {
    const { replayLog } = await import('./cli/replay.ts')
    return replayLog(options, options.output, output)
  }),
)

const { form: pathRules, default: defaultPathRule } = settings.ambiguousPaths
const ambiguousPathsHelp = `how the proxy treats ambiguous paths: ${pathRules} (default: ${defaultPathRule})`

offline(
  program
    .command('explain <what> [name...]')
    .description(
      'KIND NAMESPACE/NAME: why an object has its conditions; condition KIND/NAMESPACE/NAME: which events changed them; request: which route and policies apply to a request; providers [NAMESPACE/NAME]: which model providers running proxies have ejected, and why',
    ),
)
  .option('--host <host>', 'host of the request')
  .option('--path <path>', 'path of the request, with its query')
  .option('--method <method>', 'method of the request')
  .option('--header <field>', "header of the request, 'name: value'; may be repeated", collect)
  .option('--port <port>', 'listener port (default: all ports)')
  .option('--ambiguous-paths <value>', ambiguousPathsHelp)
  .option('--stats <address>', 'stats address of a running proxy; may be repeated', collect)
  .action(async (what: string, names: string[], options: Offline & ExplainOptions) => {
    const { explainAny } = await import('./cli/explain-any.ts')
    process.exitCode = await explainAny(what, names, options, options.output, output)
  })

offline(program.command('bisect').description('find the event that made an expectation fail'))
  .requiredOption('--expect <text>', "such as 'HTTPRoute/default/app Accepted=True'")
  .action(
    perform(async (options: Offline & { expect: string }) => {
      const { bisect } = await import('./cli/bisect.ts')
      return bisect(options.expect, options, options.output, output)
    }),
  )

program
  .command('diff <a> <b>')
  .description(
    'compare two states; exit with 1 if they differ. A state is a manifest file or folder (- for stdin), a log file, an export or nats://…; append @POSITION or @TIME to a log',
  )
  .addOption(format())
  .action(async (a: string, b: string, options: { output: OutputFormat }) => {
    const { diff } = await import('./cli/diff.ts')
    process.exitCode = await diff(a, b, options.output, output)
  })

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
  .addOption(
    new Option('-o, --output <format>', 'output format').choices(['yaml', 'json']).default('yaml'),
  )
  .action(
    perform(async (options: RenderOptions) => {
      const { render } = await import('./cli/render.ts')
      return render(options, output)
    }),
  )

program
  .command('crds')
  .description('print the custom resource definitions')
  .addOption(
    new Option('-o, --output <format>', 'output format').choices(['yaml', 'json']).default('yaml'),
  )
  .action(
    perform(async ({ output: form }: { output: 'yaml' | 'json' }) => {
      const { printCrds } = await import('./cli/crds.ts')
      return printCrds(form, output)
    }),
  )

program
  .command('version')
  .description('print the version; JSON output includes the fold version')
  .addOption(format())
  .action(
    perform(async ({ output: form }: { output: OutputFormat }) => {
      const version = packageVersion()
      if (form === 'text') output.print(version)
      else {
        const { foldVersion } = await import('./replay/index.ts')
        output.print(JSON.stringify({ version, foldVersion }))
      }
      return exitCode.fine
    }),
  )

const controllerCommand = program
  .command('controller')
  .description('run the control plane of a cluster')

takeSettings(controllerCommand, controllerSettings)

controllerCommand.action(
  perform(async (flags: Partial<Record<ControllerSettingName, string>>) => {
    const { controller } = await import('./cli/controller.ts')
    return controller(flags, output)
  }),
)

addIdentityProvider(program)
addHelp(program)

/** Wrong usage and unreadable input are told in a line; anything else is a bug and shows its stack. */
function fail(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.fine : exitCode.usage
  const isUnreadable = error instanceof UnknownEventTypeError || error instanceof DamagedEventError
  const isTheirs = error instanceof UsageError || error instanceof LogError || isUnreadable
  if (isTheirs || isAboutAddress(error)) {
    output.report(`sluice: ${error.message}`)
    return exitCode.usage
  }
  output.report(`sluice: bug: ${error instanceof Error ? error.stack : String(error)}`)
  return exitCode.bug
}

outliveReaders()
try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = fail(error)
  // What had begun before it failed, such as watching the manifests, must not keep the process.
  if (!(error instanceof CommanderError)) process.exit()
}
