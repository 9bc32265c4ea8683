/**
 * A network of pods inside a network namespace of our own: a bridge, and for each pod a namespace
 * with an address on it, so that pods bind the ports they like and nothing of the host is touched.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
const bridge = 'pods'

/** The address of the node: what is not in a pod binds it. */
export const nodeAddress = '10.244.0.1'

/** Addresses of load balancers: those of this prefix can be had. */
export const balancerPrefix = '10.244.128.'

/** Makes the bridge; the default route leads nowhere, but programs look for one. */
export async function makeNetwork(): Promise<void> {
  await ip('link', 'set', 'lo', 'up')
  await ip('link', 'add', bridge, 'type', 'bridge')
  await ip('addr', 'add', `${nodeAddress}/16`, 'dev', bridge)
  await ip('link', 'set', bridge, 'up')
  await ip('route', 'add', 'default', 'via', '10.244.0.254', 'dev', bridge)
}

async function ip(...args: string[]): Promise<void> {
  await run('ip', args)
}

// Waits for its end of the cable, then becomes the program.
const enter = `
read -r _
ip link set lo up
ip addr add "$1/16" dev eth0
ip link set eth0 up
ip route add default via ${nodeAddress}
shift
exec "$@"
`

let cables = 0

/** A process in a network namespace of its own. */
export class PodSandbox {
  readonly address: string
  #process: ChildProcess | undefined

  constructor(address: string) {
    this.address = address
  }

  /** Starts a program and gives the process, whose output the caller reads. The first one makes the namespace. */
  async start(
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ): Promise<ChildProcess> {
    const { PATH = '', HOME = '' } = process.env
    const options = { env: { PATH, HOME, ...env } }
    if (this.#process !== undefined) {
      return spawn('nsenter', ['-t', `${this.#process.pid}`, '-n', command, ...args], options)
    }
    const words = ['-n', 'sh', '-c', enter, 'sh', this.address, command, ...args]
    const child = spawn('unshare', words, options)
    this.#process = child
    const cable = `pod${++cables}`
    const namespace = await this.#namespace(child)
    await ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace)
    await ip('link', 'set', cable, 'master', bridge, 'up')
    child.stdin?.write('go\n')
    return child
  }

  /** Gives the pod another address, which it sends from as if by network address translation. */
  async addAddress(address: string): Promise<void> {
    await this.#inside('ip', 'addr', 'add', `${address}/32`, 'dev', 'eth0')
    await this.#sendFrom(address)
    // Peers that used this address before must resolve it again.
    await ip('neigh', 'flush', address).catch(() => undefined)
  }

  async removeAddress(address: string): Promise<void> {
    await this.#sendFrom(this.address).catch(() => undefined)
    await this.#inside('ip', 'addr', 'del', `${address}/32`, 'dev', 'eth0').catch(() => undefined)
  }

  async #sendFrom(address: string): Promise<void> {
    const route = ['10.244.0.0/16', 'dev', 'eth0', 'proto', 'kernel', 'scope', 'link']
    await this.#inside('ip', 'route', 'replace', ...route, 'src', address)
  }

  async #inside(...words: string[]): Promise<void> {
    await run('nsenter', ['-t', `${this.#process?.pid}`, '-n', ...words])
  }

  /** The process id, once that process has left our namespace. */
  async #namespace(child: ChildProcess): Promise<string> {
    const link = async (pid: number | 'self') =>
      (await run('readlink', [`/proc/${pid}/ns/net`])).stdout
    const ours = await link('self')
    while ((await link(child.pid ?? 0)) === ours) await new Promise((next) => setTimeout(next, 5))
    return `${child.pid}`
  }
}
