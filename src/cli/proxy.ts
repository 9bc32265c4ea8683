/** `sluice proxy`: the traffic of one Gateway, configured by a controller elsewhere. */
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { LockedError, takeFileLock } from '../base/file-lock.ts'
import { makeFolder } from '../base/make-folder.ts'
import { reachableAddress } from '../base/own-address.ts'
import { LastGood } from '../proxy/remote/last-good.ts'
import { RemoteChannel } from '../proxy/remote/remote-channel.ts'
import { trimWhenIdle } from '../proxy/workers/idle-trim.ts'
import { startProxy } from '../proxy/workers/supervisor.ts'
import {
  type RemoteSettingName,
  type RemoteSettings,
  readRemoteSettings,
  type SettingName,
} from '../settings/index.ts'
import { OperationalLog } from './operational-log.ts'
import { exitCode, type Output, UsageError } from './output.ts'
import { settingTexts } from './proxy-config.ts'
import { heedSignals } from './signals.ts'
import { announce, trafficOptions, usageProblems } from './traffic.ts'
import { packageVersion } from './version.ts'

interface ProxyCommandOptions {
  /** Values of settings by name, as given on the command line. */
  readonly flags: Partial<Record<SettingName | RemoteSettingName, string>>
}

/** Lower case letters, digits and dashes of the host name. */
function hostPart(): string {
  const text = hostname()
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
  return text.replace(/^-+|-+$/g, '').slice(0, 200) || 'proxy'
}

/** The name of this proxy: as told, or made once and kept in the state folder where there is one. */
function nameOf({ proxyName, stateDir }: RemoteSettings): string {
  if (proxyName !== undefined) return proxyName
  const fresh = `${hostPart()}-${randomBytes(4).toString('hex')}`
  if (stateDir === undefined) return fresh
  const path = join(stateDir, 'name')
  if (existsSync(path)) {
    const kept = readFileSync(path, 'utf8').trim()
    if (/^[a-z0-9-]{1,253}$/.test(kept)) return kept
  }
  writeFileSync(path, `${fresh}\n`)
  return fresh
}

/** The state folder, for this process alone. */
function openStateFolder(folder: string | undefined): () => void {
  if (folder === undefined) return () => undefined
  try {
    makeFolder(folder, 0o700)
    chmodSync(folder, 0o700)
    return takeFileLock(join(folder, 'proxy'))
  } catch (error) {
    if (error instanceof LockedError) {
      throw new UsageError(`--state-dir: ${folder} is in use by another proxy`)
    }
    throw new UsageError(`--state-dir: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** A token or a Secret that can be read on the way is no secret. */
function warnOfClear({ xdsAddress = [], xdsCaFile }: RemoteSettings, log: OperationalLog): void {
  const isNear = (address: string) => /^(?:127\.|localhost:|\[::1\])/.test(address)
  if (xdsCaFile !== undefined || xdsAddress.every(isNear)) return
  const text = 'the controller is reached in plaintext: token and Secrets can be read on the way'
  log.write('warn', `${text} (--xds-ca-file turns TLS on)`)
}

/** Runs until SIGINT, SIGTERM or POST /quitquitquit; resolves with the exit code. */
export async function proxy({ flags }: ProxyCommandOptions, output: Output): Promise<number> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const log = new OperationalLog(output)
  // Beyond the machine's own manifests nobody vouches for what a configuration names.
  const texts = await settingTexts(
    flags.config ?? (process.env.SLUICE_CONFIG_FILE || undefined),
    log,
  )
  const traffic = trafficOptions(flags, { log, loopback: false, onQuit: end, texts })
  const read = readRemoteSettings(flags, texts.env, texts.sources)
  if (!read.ok) throw usageProblems(read.problems)
  const settings = read.value
  const {
    xdsAddress = [],
    gateway = { namespace: '', name: '' },
    xdsTokenFile,
    xdsCaFile,
  } = settings
  const { stateDir, advertiseAddress } = settings
  const unlock = openStateFolder(stateDir)
  const name = nameOf(settings)
  const gatewayName = `${gateway.namespace}/${gateway.name}`
  heedSignals(end, log)
  if (stateDir === undefined) {
    log.write(
      'info',
      'without --state-dir nothing is served after a restart until a controller answers',
    )
  }
  const channel = new RemoteChannel({
    addresses: xdsAddress,
    node: {
      name,
      gateway,
      addresses: [advertiseAddress ?? reachableAddress(traffic.bindAddress)],
      version: packageVersion(),
    },
    ...(xdsTokenFile !== undefined && { tokenFile: xdsTokenFile }),
    ...(xdsCaFile !== undefined && { caFile: xdsCaFile }),
    ...(stateDir !== undefined && { lastGood: new LastGood(stateDir, gatewayName) }),
    onNotice: (severity, text) => log.write(severity, text, 'sluice::xds'),
  })
  warnOfClear(settings, log)
  log.write('info', `proxy ${name} of Gateway ${gatewayName}`)
  channel.start()
  const running = await startProxy({
    ...traffic,
    name,
    channel,
    moreMetrics: () => channel.metrics(),
  })
  announce(running, log)
  trimWhenIdle({ taken: () => channel.activity })
  await ended
  log.write('info', 'draining')
  channel.leave()
  await running.drain()
  await channel.close()
  unlock()
  return exitCode.fine
}
