/** Starts the web console of a process, and binds its data to the functions that commands use. */
import { fileURLToPath } from 'node:url'
import { isAboutAddress } from '../../../ground/errors/listening.ts'
import { consoleSettings } from '../../../ground/settings/console.ts'
import { eachDecision, type DecisionSource as RecordPlace } from '../decisions/source.ts'
import type { OperationalLog } from '../shared/operational-log.ts'
import { UsageError } from '../shared/output.ts'
import { packageVersion } from '../shared/version.ts'
import type { CommandThread } from './command-thread.ts'
import type { CommandRequest } from './commands.ts'
import type { CommandPlace } from './console-command.ts'
import type { SignIn } from './server/sign-in.ts'
import { type ConsoleSource, QueryError } from './server/source.ts'

/** What a process adds to the versions that every console shows. */
export type OwnSource = Omit<ConsoleSource, 'version' | 'foldVersion'>

/** The built page, in the same folder as the build of this file. */
const folder = fileURLToPath(
  import.meta.url.endsWith('.ts')
    ? new URL('../../../../dist/console', import.meta.url)
    : new URL('./console', import.meta.url),
)

/**
 * Starts a console.
 * @throws `port_in_use` or `address_unusable` if the address cannot be bound
 */
export async function serveConsole(
  address: string,
  own: OwnSource,
  onUrl: (url: string) => void,
  signIn?: SignIn,
) {
  const { startConsole } = await import('./server/server.ts')
  const { foldVersion } = await import('../../../control/actors/fold.ts')
  const source = { ...own, version: packageVersion(), foldVersion }
  return startConsole({ address, folder, source, onUrl, ...(signIn && { signIn }) })
}

/**
 * Starts the console of a gateway or controller. If the default port is in use, such as by another gateway,
 * the console takes a free one; if it cannot start at all, the process runs without it.
 */
export async function openConsole(
  address: string,
  log: OperationalLog,
  own: OwnSource,
  signIn?: SignIn,
) {
  const onUrl = (url: string) => log.write('info', `console: ${url}`)
  const isDefault = address === consoleSettings.consoleAddress.default
  try {
    return await serveConsole(address, own, onUrl, signIn).catch((error) => {
      if (!isDefault || !isAboutAddress(error) || error.code !== 'port_in_use') throw error
      return serveConsole('localhost:0', own, onUrl, signIn)
    })
  } catch (error) {
    if (isAboutAddress(error) && !isDefault) throw error
    log.write('warn', `The console is off: ${error instanceof Error ? error.message : error}`)
    return undefined
  }
}

/**
 * The commands that a page may run. They open the log by themselves, so that it must not be in memory only.
 * `placeOf` is called for each command. Commands that change something need `hasActions`.
 */
export function commandsOf(
  placeOf: () => CommandPlace,
  hasActions = false,
): Pick<ConsoleSource, 'runCommand' | 'runAction'> {
  let thread: Promise<CommandThread> | undefined
  const run = async (request: Omit<CommandRequest, 'place'>) => {
    thread ??= import('./command-thread.ts').then((module) => new module.CommandThread())
    return (await thread).run({ ...request, place: placeOf() })
  }
  return {
    runCommand: (name, options) => run({ name, options }),
    ...(hasActions && { runAction: (name, options, author) => run({ name, options, author }) }),
  }
}

/**
 * Lets pages send requests to the listeners of the gateway in this process, as any client may.
 * @param bindAddress where listeners are bound
 */
export function sendingTo(
  bindAddress: string | undefined,
  ports: () => readonly number[],
): Pick<ConsoleSource, 'send'> {
  return {
    send: async function* (request, signal) {
      const { sendRequest } = await import('./server/send.ts')
      yield* sendRequest(request, { bindAddress, ports: ports() }, signal)
    },
  }
}

/** The records of a folder or else of a NATS server; nothing if neither is named. */
export function recordsOf({ recordDir, nats }: RecordPlace): Pick<ConsoleSource, 'decisions'> {
  if (recordDir === undefined && nats === undefined) return {}
  const place = recordDir === undefined ? { nats } : { recordDir }
  return {
    decisions: {
      read: (query, report, use) =>
        eachDecision(place, query, report, use).then(
          () => undefined,
          (error) => {
            throw error instanceof UsageError ? new QueryError(error.message) : error
          },
        ),
      tail: (signal) => tailOf(place, signal),
    },
  }
}

async function* tailOf({ recordDir, nats }: RecordPlace, signal: AbortSignal) {
  if (recordDir !== undefined) {
    const { tailFolder } = await import('../../../past/decisions/tail.ts')
    yield* tailFolder(recordDir, signal)
  } else if (nats !== undefined) {
    const { readBlocks } = await import('../../../past/decisions/read.ts')
    const { followPublishedBlocks } = await import('../../../control/log/nats-decision-reader.ts')
    for await (const { bytes } of followPublishedBlocks(nats, signal)) {
      for (const result of readBlocks(bytes, '')) if ('decision' in result) yield result.decision
    }
  }
}
