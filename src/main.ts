/** Defines the command line. Each command is a function of its options; see src/tools/cli. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { consoleSettings } from './ground/settings/console.ts'
import { type ControllerSettingName, controllerSettings } from './ground/settings/controller.ts'
import { settings } from './ground/settings/index.ts'
import { remoteSettings } from './ground/settings/remote.ts'
import type { ConsoleOptions } from './tools/cli/console/console.ts'
import type { DecisionsOptions } from './tools/cli/decisions/decisions.ts'
import type { ExplainOptions } from './tools/cli/explain/explain.ts'
import { addFilterConfig } from './tools/cli/filter-config/index.ts'
import { addIdentityProvider } from './tools/cli/idp/index.ts'
import { addImport } from './tools/cli/import/index.ts'
import type { ProxyFlags } from './tools/cli/proxy/proxy.ts'
import type { RecordingOptions } from './tools/cli/recording/recording.ts'
import type { RenderOptions } from './tools/cli/render/render.ts'
import type { RunOptions } from './tools/cli/run/run.ts'
import { fail } from './tools/cli/shared/failure.ts'
import {
  addHelp,
  addSettings,
  collect,
  hintAtHelp,
  nonEmpty,
  type RecordFolder,
  recordDir,
  requestsOption,
} from './tools/cli/shared/options.ts'
import {
  type Answer,
  type ManifestFormat,
  type OutputFormat,
  processOutput as output,
  printAnswer,
  surviveOutputErrors,
} from './tools/cli/shared/output.ts'
import { packageVersion } from './tools/cli/shared/version.ts'
import { addShellCommands } from './tools/cli/shell/index.ts'
import type { SimulateOptions } from './tools/cli/simulate/simulate.ts'
import type { StatusOptions } from './tools/cli/status/status.ts'
import type { ValidateOptions } from './tools/cli/validate/validate.ts'
import type { WhatIfOptions } from './tools/cli/what-if/what-if.ts'

const { report } = output

/** Prints the answer of a command and sets the exit code. */
async function print(
  answer: Answer | Promise<Answer>,
  format: OutputFormat | ManifestFormat,
): Promise<void> {
  process.exitCode = printAnswer(await answer, format, output)
}

/** Rejects other schemes, which would be read as a host name. */
function natsServer(value: string): string {
  const scheme = /^(.*):\/\//.exec(nonEmpty(value))?.[1] ?? 'nats'
  if (scheme === 'nats' || scheme === 'tls') return value
  throw new InvalidArgumentError('It is not nats://HOST:PORT, or tls://HOST:PORT.')
}

const manifests = () =>
  new Option(
    '-f, --file <path>',
    'manifest file or folder, - for standard input; may be repeated',
  ).argParser(collect)
const format = () =>
  new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text')
const manifestFormat = () =>
  new Option('-o, --output <format>', 'output format').choices(['yaml', 'json']).default('yaml')

/** Adds the options of every command that reads a state without running a gateway. */
function offline(command: Command): Command {
  return command
    .addOption(manifests())
    .option('--log-file <path>', 'event log file, or an export of one')
    .option('--nats <url>', 'event log on a NATS server', natsServer)
    .option('--at <position|time>', 'ignore events after this position or time')
    .addOption(format())
}

type Offline = RecordingOptions & { readonly output: OutputFormat }

const program = new Command('sluice')
  .description('Gateway for AI, MCP and HTTP traffic.')
  .version(packageVersion(), '-V, --version', 'print the version')
  .exitOverride()

const runCommand = program
  .command('run')
  .description('run a gateway from manifest files')
  .addOption(
    new Option('-f, --file <path>', 'manifest file or folder; may be repeated')
      .argParser(collect)
      .makeOptionMandatory(),
  )
  .addOption(
    new Option('--log-file <path>', 'store the event log in this file')
      .argParser(nonEmpty)
      .conflicts(['ephemeral', 'nats']),
  )
  .addOption(
    new Option('--nats <url>', 'store the event log on a NATS server')
      .argParser(natsServer)
      .conflicts('ephemeral'),
  )
  .option('--ephemeral', 'store the event log in memory only')
addSettings(runCommand, { ...settings, ...consoleSettings }).action(async (options: RunOptions) => {
  const { run } = await import('./tools/cli/run/run.ts')
  process.exitCode = await run(options, output)
})

const proxyCommand = program
  .command('proxy')
  .description('run the proxy of one Gateway, configured by a controller')
addSettings(proxyCommand, { ...remoteSettings, ...settings }).action(async (flags: ProxyFlags) => {
  const { proxy } = await import('./tools/cli/proxy/proxy.ts')
  process.exitCode = await proxy(flags, output)
})

program
  .command('validate [path...]')
  .description('check manifests; exit with 1 if an object is invalid')
  .addOption(manifests())
  .option('--strict', 'exit with 1 also if a reference leads to an object that is not in the files')
  .addOption(format())
  .addOption(
    new Option('--format <format>', 'print a report for other tools')
      .choices(['sarif', 'github', 'junit'])
      .conflicts('output'),
  )
  .action(async (paths: string[], { file = [], ...options }: Partial<ValidateOptions>) => {
    const { validate } = await import('./tools/cli/validate/validate.ts')
    const output = options.output ?? 'text'
    await print(validate({ ...options, output, file: [...file, ...paths] }, report), output)
  })

offline(program.command('status').description('show the conditions of every object'))
  .option('--strict', 'exit with 1 if a reference leads to an object that is not in the files (-f)')
  .action(async (options: Offline & StatusOptions) => {
    const { status } = await import('./tools/cli/status/status.ts')
    await print(status(options, report), options.output)
  })

offline(program.command('log').description('print the events of the log in order'))
  .option('--subject <text>', 'only events whose subject contains this text')
  .option('--snapshots', 'also print the stored snapshots (with -o json)')
  .action(async (options: Offline) => {
    const { exportLog, printLog } = await import('./tools/cli/log/log.ts')
    if (options.output === 'json') process.exitCode = await exportLog(options, output)
    else await print(printLog(options, report), options.output)
  })

offline(
  program
    .command('replay')
    .description('replay a recorded log; exit with 1 if a published state differs')
    .option('--all-snapshots', 'compare every snapshot of the log, instead of a few'),
).action(async (options: Offline) => {
  const { replayLog } = await import('./tools/cli/replay/replay.ts')
  await print(replayLog(options, report), options.output)
})

const { form: pathRules, default: defaultPathRule } = settings.ambiguousPaths
const ambiguousPathsHelp = `how the proxy treats ambiguous paths: ${pathRules} (default: ${defaultPathRule})`

/** Adds the flags that describe one request. */
function requestFlags(command: Command): Command {
  return command
    .option('--host <host>', 'host of the request')
    .option('--path <path>', 'path of the request, with its query')
    .option('--method <method>', 'method of the request')
    .option('--header <field>', "header of the request, 'name: value'; may be repeated", collect)
    .option('--port <port>', 'listener port (default: all ports)')
    .option('--ambiguous-paths <value>', ambiguousPathsHelp)
}

requestFlags(
  offline(
    program
      .command('explain <what> [name...]')
      .description(
        'KIND NAMESPACE/NAME: why an object has its conditions; condition KIND/NAMESPACE/NAME: which events changed them; request: which route and policies apply to a request, or how a recorded one was decided; providers [NAMESPACE/NAME]: which model providers running proxies have ejected, and why',
      ),
  ),
)
  .option(
    '--id <id>',
    'explain the recorded request with this x-request-id; --host, --path, --method, --header and --port are not used',
    nonEmpty,
  )
  .addOption(recordDir())
  .option('--stats <address>', 'stats address of a running proxy; may be repeated', collect)
  .action(async (what: string, names: string[], options: ExplainOptions) => {
    const { explain } = await import('./tools/cli/explain/explain.ts')
    await print(explain(what, names, options, report), options.output)
  })

requestFlags(
  offline(
    program
      .command('simulate')
      .description(
        'show what a proxy would decide about requests; exit with 0 if all are decided, 3 if some are undecided',
      ),
  ),
)
  .addOption(new Option('--scheme <scheme>', 'scheme of the request').choices(['http', 'https']))
  .option('--source <address>', 'client address of the request')
  .option('--overlay', 'add the objects of -f to the state of the log')
  .option('--curl <command>', 'the request of a curl command line')
  .option('--har <path>', 'the requests of a HAR file')
  .addOption(recordDir())
  .addOption(requestsOption('access log in JSON, or the same as --record-dir'))
  .option(
    '--assume <verdict>',
    "verdict of a step that cannot be computed, such as 'traffic.extAuth=pass', 'traffic.extAuth=403' or 'backend=NAMESPACE/NAME'; may be repeated",
    collect,
  )
  .action(async ({ recordDir: folder, ...options }: SimulateOptions & RecordFolder) => {
    const { simulate } = await import('./tools/cli/simulate/simulate.ts')
    const requests = folder ?? options.requests
    process.exitCode = await simulate({ ...options, ...(requests && { requests }) }, output)
  })

program
  .command('decisions')
  .description(
    'print what proxies decided about requests, in the order in which the requests ended (--nats: in the order in which proxies published them); exit with 1 if no record is selected',
  )
  .addOption(recordDir())
  .addOption(new Option('--nats <url>', 'decision records on a NATS server').argParser(natsServer))
  .addOption(new Option('--id <id>', 'only requests with this x-request-id').argParser(nonEmpty))
  .option('--status <status>', 'only responses with this status, such as 403 or 4xx')
  .option('--route <namespace/name>', 'only requests of this route')
  .option(
    '--since <time>',
    'only requests that started since this time, or within this duration before now, such as 15m',
  )
  .addOption(format())
  .action(async (options: DecisionsOptions) => {
    const { decisions } = await import('./tools/cli/decisions/decisions.ts')
    process.exitCode = await decisions(options, output)
  })

const consoleCommand = program
  .command('console [export]')
  .description('serve the web console for an event log, or for an export of one')
  .option('--log-file <path>', 'event log file, or an export of one')
  .option('--nats <url>', 'event log on a NATS server', natsServer)
  .addOption(recordDir())
  .option('--no-open', 'do not open a browser')
addSettings(consoleCommand, consoleSettings).action(
  async (exportFile: string | undefined, options: ConsoleOptions) => {
    const { serveConsoleOf } = await import('./tools/cli/console/console.ts')
    process.exitCode = await serveConsoleOf(exportFile, options, output)
  },
)

offline(program.command('bisect').description('find the event that made an expectation fail'))
  .requiredOption('--expect <text>', "such as 'HTTPRoute/default/app Accepted=True'")
  .action(async (options: Offline & { expect: string }) => {
    const { bisect } = await import('./tools/cli/bisect/bisect.ts')
    await print(bisect(options, report), options.output)
  })

program
  .command('diff <a> <b>')
  .description(
    'compare two states; exit with 1 if they differ. A state is a manifest file or folder (- for stdin), a log file, an export or nats://…; append @POSITION or @TIME to a log',
  )
  .addOption(format())
  .action(async (a: string, b: string, options: { output: OutputFormat }) => {
    const { diff } = await import('./tools/cli/diff/diff.ts')
    await print(diff(a, b, report), options.output)
  })

program
  .command('what-if')
  .description(
    'show what a change of manifests would change; exit with 0 if nothing changes, 1 if something does, 3 if some requests are undecided and nothing else changes',
  )
  .addOption(
    new Option('--from <path>', 'manifests of the present state; may be repeated').argParser(
      collect,
    ),
  )
  .option('--log-file <path>', 'event log file with the present state, or an export of one')
  .option('--nats <url>', 'event log with the present state on a NATS server', natsServer)
  .option('--at <position|time>', 'ignore events after this position or time')
  .addOption(manifests().makeOptionMandatory())
  .option('--overlay', 'only add and replace the objects of -f; otherwise, all others are removed')
  .addOption(recordDir('folder with decision records; compare the outcome of each'))
  .addOption(requestsOption('the same as --record-dir').hideHelp())
  .option('--ambiguous-paths <value>', ambiguousPathsHelp)
  .addOption(
    new Option('-o, --output <format>', 'output format')
      .choices(['text', 'json', 'markdown'])
      .default('text'),
  )
  .option('--fail-on <kinds>', 'exit with 1 only for changes of these kinds, such as deny-to-allow')
  .action(async ({ recordDir: folder, ...options }: WhatIfOptions & RecordFolder) => {
    const { whatIf } = await import('./tools/cli/what-if/what-if.ts')
    const format = options.output === 'json' ? 'json' : 'text'
    const requests = folder ?? options.requests
    await print(whatIf({ ...options, ...(requests && { requests }) }, report), format)
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
  .addOption(manifestFormat())
  .action(async (options: RenderOptions & { output: ManifestFormat }) => {
    const { render } = await import('./tools/cli/render/render.ts')
    await print(render(options, report), options.output)
  })

program
  .command('crds')
  .description('print the custom resource definitions')
  .addOption(manifestFormat())
  .action(async (options: { output: ManifestFormat }) => {
    const { crds } = await import('./control/api/crds.ts')
    const { manifestsAnswer } = await import('./tools/cli/shared/manifests.ts')
    await print(manifestsAnswer(crds()), options.output)
  })

program
  .command('version')
  .description('print the version; JSON output includes the fold version')
  .addOption(format())
  .action(async (options: { output: OutputFormat }) => {
    const version = packageVersion()
    if (options.output === 'text') return output.print(version)
    const { foldVersion } = await import('./past/replay/index.ts')
    output.print(JSON.stringify({ version, foldVersion }))
  })

const controllerCommand = program
  .command('controller')
  .description('run the control plane of a cluster')
addSettings(controllerCommand, { ...controllerSettings, ...consoleSettings }).action(
  async (flags: Partial<Record<ControllerSettingName, string>>) => {
    const { controller } = await import('./tools/cli/controller/controller.ts')
    process.exitCode = await controller(flags, output)
  },
)

addIdentityProvider(program)
addImport(program)
addShellCommands(program)
addFilterConfig(program)
addHelp(program)
hintAtHelp(program)

surviveOutputErrors()
try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = await fail(error, output)
  // Something that the failed command has started, such as a watch, must not keep the process alive.
  if (!(error instanceof CommanderError)) process.exit()
}
