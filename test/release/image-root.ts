/**
 * Runs the commands of an image without a container engine: its layers unpacked, in namespaces of its own, as
 * its user, on a read-only root.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { canUnshare } from '../support/namespaces.ts'

/** The parts of an image configuration that a container engine reads. */
export interface ImageConfig {
  readonly architecture: string
  readonly config: {
    readonly User: string
    readonly WorkingDir: string
    readonly Env: readonly string[]
    readonly Entrypoint: readonly string[]
    readonly Cmd: readonly string[]
  }
  readonly rootfs: { readonly diff_ids: readonly string[] }
}

export interface Descriptor {
  readonly digest: string
  readonly mediaType: string
  readonly platform?: { readonly architecture: string }
  readonly annotations?: Readonly<Record<string, string>>
}

/** An unpacked OCI layout. */
export class Layout {
  readonly #folder: string

  constructor(archive: string, folder: string) {
    mkdirSync(folder, { recursive: true })
    unpack(archive, folder)
    this.#folder = folder
  }

  blobPath({ digest }: Pick<Descriptor, 'digest'>): string {
    return join(this.#folder, 'blobs', digest.replace(':', '/'))
  }

  read<T>(descriptor: Pick<Descriptor, 'digest'>): T {
    return JSON.parse(readFileSync(this.blobPath(descriptor), 'utf8')) as T
  }

  /** The entries of index.json. */
  entries(): readonly Descriptor[] {
    const text = readFileSync(join(this.#folder, 'index.json'), 'utf8')
    return (JSON.parse(text) as { manifests: Descriptor[] }).manifests
  }
}

export function unpack(archive: string, folder: string): void {
  const { status, stderr } = spawnSync('tar', ['-xf', archive, '-C', folder], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`tar -xf ${archive}: ${stderr}`)
}

/** Gives the folder a file system as its own, read-only but for /tmp, and runs a command in it. */
const enter = `
set -e
root=$1; user=$2; group=$3; folder=$4; shift 4
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
exec unshare --user --map-user="$user" --map-group="$group" --root="$root" --wd="$folder" -- "$@"
`

const namespaces = ['--user', '--map-root-user', '--mount']
export const canEnter = canUnshare(namespaces, ['true'])

/** Adds what a container engine brings: places for the file systems that it mounts. */
export function addMountPoints(root: string, manifests: string): void {
  for (const folder of ['proc', 'dev', 'tmp', 'manifests'])
    mkdirSync(join(root, folder), { recursive: true })
  writeFileSync(join(root, 'manifests', 'all.yaml'), manifests)
}

/** Starts a command in the image, by default with its entry point. */
export function spawnInside(
  root: string,
  { config }: ImageConfig,
  args: readonly string[],
  entrypoint = config.Entrypoint,
) {
  const [user = '', group = ''] = config.User.split(':')
  const inside = [root, user, group, config.WorkingDir, ...entrypoint, ...args]
  const env = Object.fromEntries(config.Env.map((pair) => pair.split(/=(.*)/s).slice(0, 2)))
  // The tools that make the namespaces are those of the host; Node comes first, from the image.
  const path = `${env.PATH}:${process.env.PATH}`
  return spawn('unshare', [...namespaces, 'sh', '-c', enter, 'sh', ...inside], {
    env: { ...env, PATH: path },
  })
}
