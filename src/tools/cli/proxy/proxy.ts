/** `sluice proxy` serves the traffic of one Gateway, configured over the network by a controller. */
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { LockedError, takeFileLock } from '../../../control/plane/file-lock.ts'
import { reachableAddress } from '../../../control/plane/reachable-address.ts'
import { LastGood } from '../../../gateway/proxy/remote/last-good.ts'
import { prepareThreads } from '../../../gateway/proxy/workers/prepared-threads.ts'
import { trimWhenIdle } from '../../../ground/base/idle-trim.ts'
import { makeFolder } from '../../../ground/base/make-folder.ts'
import type { SettingName } from '../../../ground/settings/index.ts'
import {
  type RemoteSettingName,
  type RemoteSettings,
  remoteSettings,
} from '../../../ground/settings/remote.ts'
import { readTable } from '../../../ground/settings/table.ts'
import { OperationalLog } from '../shared/operational-log.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { settingTexts, valuesOf } from '../shared/settings.ts'
import { handleSignals } from '../shared/signals.ts'
import { logAddresses, trafficOptions } from '../shared/traffic.ts'
import { packageVersion } from '../shared/version.ts'

/** Values of flags as given on the command line, by setting name. */
export type ProxyFlags = Partial<Record<SettingName | RemoteSettingName, string>>

/** The host name in lower case, with dashes in place of characters that a DNS name cannot have. */
function hostPart(): string {
  const text = hostname()
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
  return text.replace(/^-+|-+$/g, '').slice(0, 200) || 'proxy'
}

/** The configured name of this proxy, or a generated one, which is stored in the state folder, if any. */
function nameOf({ proxyName, stateDir }: RemoteSettings): string {
  if (proxyName !== undefined) return proxyName
  const fresh = `${hostPart()}-${randomBytes(4).toString('hex')}`
  if (stateDir === undefined) return fresh
  const path = join(stateDir, 'name')
  if (existsSync(path)) {
    const stored = readFileSync(path, 'utf8').trim()
    if (/^[a-z0-9-]{1,253}$/.test(stored)) return stored
  }
  writeFileSync(path, `${fresh}\n`)
  return fresh
}

interface ProxyState {
  readonly name: string
  /** The folder, if it can be used. */
  readonly folder?: string
  readonly lastGood?: Pick<LastGood, 'load' | 'save'>
  unlock(): void
}

/**
 * Creates and locks the state folder. A folder that cannot be used, such as on a full disk, is only reported: the
 * proxy serves without it, and counts every save as failed. @throws UsageError if another proxy uses it
 */
function openState(settings: RemoteSettings, log: OperationalLog): ProxyState {
  const { gateway, stateDir: folder } = settings
  const unlock = () => undefined
  if (folder === undefined) {
    log.write('info', 'no --state-dir: after a restart, the proxy serves once a controller answers')
    return { name: nameOf(settings), unlock }
  }
  try {
    makeFolder(folder, 0o700)
    chmodSync(folder, 0o700)
    const unlockFolder = takeFileLock(join(folder, 'proxy'))
    const lastGood = new LastGood(folder, `${gateway.namespace}/${gateway.name}`)
    return { name: nameOf(settings), folder, lastGood, unlock: unlockFolder }
  } catch (error) {
    if (error instanceof LockedError) {
      throw new UsageError(`--state-dir: ${folder} is in use by another proxy`)
    }
    const why = error instanceof Error ? error.message : String(error)
    const text = `--state-dir: ${folder} cannot be used: ${why}`
    log.write('warn', `${text}. After a restart, the proxy serves once a controller answers.`)
    const lastGood = { load: () => undefined, save: () => Promise.reject(new Error(why)) }
    return { name: nameOf({ ...settings, stateDir: undefined }), lastGood, unlock }
  }
}

/** Where the commands of MCP targets run: in another container of the pod. */
function stdioOf({ stdioAddress, stdioTokenFile, stdioNamespaces, gateway }: RemoteSettings) {
  if (stdioAddress === undefined || stdioAddress === 'off') return undefined
  if (stdioTokenFile === undefined) {
    throw new UsageError('SLUICE_STDIO_ADDRESS needs SLUICE_STDIO_TOKEN_FILE')
  }
  return {
    address: stdioAddress,
    token: { file: stdioTokenFile },
    ...(stdioNamespaces === 'Same' && { namespace: gateway.namespace }),
  }
}

/** Warns if the connection to a controller on another machine is not encrypted. */
function warnAboutPlaintext({ xdsAddress, xdsCaFile }: RemoteSettings, log: OperationalLog): void {
  const isLocal = (address: string) => /^(?:127\.|localhost:|\[::1\])/.test(address)
  if (xdsCaFile !== undefined || xdsAddress.every(isLocal)) return
  const text = 'the controller is reached in plaintext: others may read the token and Secrets'
  log.write('warn', `${text} (--xds-ca-file turns TLS on)`)
}

/** Runs until SIGINT, SIGTERM or POST /quitquitquit; resolves to the exit code. */
export async function proxy(flags: ProxyFlags, output: Output): Promise<number> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const log = new OperationalLog(output)
  const texts = await settingTexts(
    flags.config ?? (process.env.SLUICE_CONFIG_FILE || undefined),
    log,
  )
  // Configuration from another machine must not make the proxy connect to loopback addresses of this one.
  const settings = valuesOf(readTable(remoteSettings, flags, texts.env, texts.sources))
  const { xdsAddress, gateway } = settings
  const { name, lastGood, unlock, ...state } = openState(settings, log)
  const folder = state.folder && join(state.folder, 'decisions')
  const traffic = trafficOptions(flags, {
    log,
    loopback: false,
    records: { folder, isCollected: true },
    seriesFolder: state.folder && join(state.folder, 'series'),
    stdio: stdioOf(settings),
    grants: state.folder && join(state.folder, 'grants.db'),
    onQuit: end,
    texts,
  })
  const gatewayName = `${gateway.namespace}/${gateway.name}`
  handleSignals(end, log)
  prepareThreads(traffic.workers)
  const { RemoteChannel } = await import('../../../gateway/proxy/remote/remote-channel.ts')
  const { startProxy } = await import('../../../gateway/proxy/workers/supervisor.ts')
  const channel = new RemoteChannel({
    addresses: xdsAddress,
    node: {
      name,
      gateway,
      addresses: [settings.advertiseAddress ?? reachableAddress(traffic.bindAddress)],
      version: packageVersion(),
      instance: randomBytes(8).toString('hex'),
    },
    tokenFile: settings.xdsTokenFile,
    caFile: settings.xdsCaFile,
    ...(lastGood && { lastGood }),
    onNotice: (severity, text) => log.write(severity, text, 'sluice::xds'),
  })
  warnAboutPlaintext(settings, log)
  log.write('info', `proxy ${name} of Gateway ${gatewayName}`)
  channel.start()
  const running = await startProxy({
    ...traffic,
    name,
    channel,
    ledger: { connect: channel.connectLedger, isSole: false },
    reportList: channel.reportList,
    reportEnded: channel.reportEnded,
    // With a publisher, the controller reads the records from the NATS server.
    ...(traffic.publisher === undefined && { reportRecords: channel.reportRecords }),
    connectSeries: channel.connectSeries,
    moreMetrics: () => channel.metrics(),
  })
  logAddresses(running, log)
  trimWhenIdle({ taken: () => channel.activity })
  await ended
  log.write('info', 'draining')
  channel.leave()
  await running.drain()
  await channel.close()
  unlock()
  return exitCode.success
}
