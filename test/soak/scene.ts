/** The gateway of a soak, with its small disk, its kill switches and everything around it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, RunningGateway } from '../support/gateway.ts'
import { canUnshare } from '../support/namespaces.ts'
import { Accounts } from './accounts.ts'
import type { Ledger } from './ledger.ts'
import type { Options } from './options.ts'
import { Resources } from './resources.ts'
import { changing, manifests } from './routes.ts'
import { type Servers, startServers } from './servers.ts'

export interface Scene {
  readonly servers: Servers
  readonly accounts: Accounts
  readonly resources: Resources
  readonly gateway: RunningGateway
  readonly pid: number
  readonly switches: string
  /** The small disk as this process sees it; undefined if none could be mounted. */
  readonly disk: string | undefined
  close(): Promise<void>
}

const workers = 2
const diskMegabytes = 16

/** Mounts a small disk in a namespace of the gateway's own, which ends with it. */
const mountDisk = (disk: string): readonly string[] => {
  const script = `mount -t tmpfs -o size=${diskMegabytes}m tmpfs "$0" && exec "$@"`
  return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, disk]
}

export async function startScene(ledger: Ledger, options: Options): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-soak-'))
  const disk = join(folder, 'disk')
  const switches = join(folder, 'switches')
  for (const one of [disk, switches]) mkdirSync(one)
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const servers = await startServers(ledger, options.seed, options.programs).catch((error) => {
    remove()
    throw error
  })
  const accounts = new Accounts(ledger, servers.bills)
  const stats = `127.0.0.1:${await freePort()}`
  const hasDisk = canUnshare(['--mount'], ['true'])
  const gateway = new RunningGateway({
    manifests: { 'all.yaml': manifests(servers), 'changing.yaml': changing(0) },
    ...(hasDisk && { within: mountDisk(disk) }),
    args: [
      ...['--workers', `${workers}`, '--access-log', 'json', '--stats-address', stats],
      ...['--log-file', join(disk, 'events.db'), '--record-dir', join(disk, 'decisions')],
    ],
    env: {
      NODE_OPTIONS: `--disable-warning=ExperimentalWarning --import=${join(import.meta.dirname, 'kill-switch.ts')}`,
      SLUICE_SOAK_SWITCHES: switches,
      SLUICE_RECORD_MEGABYTES: '8',
    },
    onOutput: accounts.read,
  })
  const close = async () => {
    await gateway.dispose()
    await servers.close()
    remove()
  }
  try {
    await gateway.start()
  } catch (error) {
    await close()
    throw error
  }
  const pid = gateway.pid ?? 0
  const resources = new Resources(pid, stats)
  await resources.begin()
  return {
    ...{ servers, accounts, resources, gateway, pid, switches, close },
    disk: hasDisk ? join(`/proc/${pid}/root`, disk) : undefined,
  }
}

/** Keeps what a failed run leaves for its reader. */
export function writeFindings(name: string, text: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'sluice-soak-findings-')), name)
  writeFileSync(file, text)
  return file
}
