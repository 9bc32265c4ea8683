/**
 * What the kubelet makes of a pod template before it starts a container, for containers that run as
 * plain processes: volumes lie in a folder that stands for the container's root, and paths below a
 * mounted volume become paths below that folder.
 */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import type { ApiServer } from './api-server.ts'

export interface EnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string }
    readonly secretKeyRef?: { readonly name: string; readonly key: string }
    readonly resourceFieldRef?: object
  }
}

interface Item {
  readonly key: string
  readonly path: string
}

export interface Volume {
  readonly name: string
  readonly configMap?: {
    readonly name: string
    readonly optional?: boolean
    readonly items?: readonly Item[]
  }
  readonly secret?: {
    readonly secretName: string
    readonly optional?: boolean
    readonly items?: readonly Item[]
  }
  readonly persistentVolumeClaim?: { readonly claimName: string }
  readonly projected?: {
    readonly sources: readonly {
      readonly serviceAccountToken?: { readonly audience: string; readonly path: string }
    }[]
  }
}

export interface Container {
  readonly name: string
  readonly image: string
  readonly args?: readonly string[]
  readonly env?: readonly EnvVar[]
  readonly readinessProbe?: {
    readonly httpGet?: { readonly path: string; readonly port: number }
    readonly grpc?: { readonly port: number; readonly service?: string }
  }
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
}

export interface PodSpec {
  readonly serviceAccountName?: string
  readonly terminationGracePeriodSeconds?: number
  readonly containers: readonly Container[]
  readonly volumes?: readonly Volume[]
}

export interface PodFacts {
  readonly server: ApiServer
  readonly namespace: string
  readonly pod: string
  /** The address of the pod. */
  readonly ip: string
  /** Values of names in the environment, in place of a DNS server and a Service. */
  readonly hosts: Readonly<Record<string, string>>
  /** Folders in place of persistent volumes, by the name of their claim. */
  readonly claims?: Readonly<Record<string, string>>
}

/** Arguments and environment of a process. */
export interface Prepared {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Brings ConfigMaps and Secrets up to date, as the kubelet does after a while. */
  readonly refresh: () => Promise<void>
}

/**
 * Fills the volumes of the container below `folder` and determines its command and environment.
 * @throws an error with the name of a missing object that a volume needs
 */
export async function prepareContainer(
  facts: PodFacts,
  spec: PodSpec,
  container: Container,
  folder: string,
): Promise<Prepared> {
  const mounts = new Map(container.volumeMounts?.map(({ name, mountPath }) => [name, mountPath]))
  const account = spec.serviceAccountName ?? 'default'
  const volumes = (spec.volumes ?? []).flatMap((volume) => {
    const mountPath = mounts.get(volume.name)
    return mountPath === undefined ? [] : [[volume, join(folder, mountPath)] as const]
  })
  for (const [volume, place] of volumes) await fill(facts, volume, place, account)
  const located = (text: string) => {
    const path = [...mounts.values()].find((one) => text === one || text.startsWith(`${one}/`))
    return path === undefined ? text : join(folder, text)
  }
  return {
    args: (container.args ?? []).map(located),
    env: await environment(facts, container.env ?? [], account, located),
    refresh: async () => {
      for (const [volume, place] of volumes) {
        const isRefreshed = volume.configMap !== undefined || volume.secret !== undefined
        if (isRefreshed) await fill(facts, volume, place, account)
      }
    },
  }
}

async function environment(
  { server, pod, namespace, ip, hosts }: PodFacts,
  variables: readonly EnvVar[],
  account: string,
  located: (text: string) => string,
): Promise<Record<string, string>> {
  const fields: Readonly<Record<string, string>> = {
    'metadata.name': pod,
    'metadata.namespace': namespace,
    'spec.nodeName': 'node-1',
    'status.podIP': ip,
    'spec.serviceAccountName': account,
  }
  const env: Record<string, string> = {}
  for (const { name, value = '', valueFrom } of variables) {
    const field = valueFrom?.fieldRef?.fieldPath
    const secret = valueFrom?.secretKeyRef
    if (secret !== undefined) {
      const data = await dataOf(server, namespace, 'secrets', secret.name)
      env[name] = Buffer.from(data[secret.key] ?? '', 'base64').toString()
      continue
    }
    const expanded = value.replaceAll(/\$\$|\$\(([^)]+)\)/g, (all, other?: string) =>
      other === undefined ? '$' : (env[other] ?? all),
    )
    const text = field === undefined ? expanded : (fields[field] ?? '')
    env[name] = hosts[text] ?? located(text)
  }
  return env
}

async function fill(
  { server, namespace, claims = {} }: PodFacts,
  { configMap, secret, projected, persistentVolumeClaim: claim }: Volume,
  folder: string,
  account: string,
): Promise<void> {
  if (claim !== undefined) {
    mkdirSync(dirname(folder), { recursive: true })
    symlinkSync(claims[claim.claimName] ?? '', folder)
    return
  }
  mkdirSync(folder, { recursive: true })
  if (configMap !== undefined) {
    const data = await dataOf(server, namespace, 'configmaps', configMap.name, configMap.optional)
    write(folder, selected(data, configMap.items))
  }
  if (secret !== undefined) {
    const data = await dataOf(server, namespace, 'secrets', secret.secretName, secret.optional)
    const plain = Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')])
    write(folder, selected(Object.fromEntries(plain), secret.items))
  }
  for (const { serviceAccountToken: token } of projected?.sources ?? []) {
    if (token === undefined) continue
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
    const spec = { audiences: [token.audience] }
    const { body } = await server.request('POST', path, { spec })
    write(folder, { [token.path]: body.status.token })
  }
}

async function dataOf(
  server: ApiServer,
  namespace: string,
  plural: string,
  name: string,
  optional = false,
): Promise<Readonly<Record<string, string>>> {
  const path = `/api/v1/namespaces/${namespace}/${plural}/${name}`
  const { body, status } = await server.request('GET', path)
  if (status === 200) return body.data ?? {}
  if (status === 404 && optional) return {}
  throw new Error(`${plural} ${namespace}/${name}: ${status}`)
}

function selected<Content>(
  data: Readonly<Record<string, Content>>,
  items: readonly Item[] | undefined,
): Readonly<Record<string, Content>> {
  if (items === undefined) return data
  const chosen = items.flatMap(({ key, path }) => {
    const content = data[key]
    return content === undefined ? [] : [[path, content] as const]
  })
  return Object.fromEntries(chosen)
}

/** All at once, behind a symbolic link that is replaced, as the kubelet does it. */
function write(folder: string, files: Readonly<Record<string, string | Buffer>>): void {
  const fresh = mkdtempSync(join(folder, '..files-'))
  for (const [name, content] of Object.entries(files)) {
    const path = join(fresh, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    const link = join(folder, name)
    mkdirSync(dirname(link), { recursive: true })
    rmSync(link, { force: true })
    symlinkSync(relative(dirname(link), join(folder, '..data', name)), link)
  }
  symlinkSync(basename(fresh), `${fresh}.link`)
  renameSync(`${fresh}.link`, join(folder, '..data'))
}
