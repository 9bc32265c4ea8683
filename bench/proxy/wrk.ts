/**
 * Claim: the figures of `proxy/http1` do not depend on its own client. The same requests by wrk, on 64
 * connections, which sends each next request as soon as it can, in rounds of two seconds.
 */
import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type BenchContext, interleave, pinned, type Row } from '../harness.ts'
import { check } from './cost.ts'
import { envoy } from './envoy-peer.ts'
import { againstNginx } from './http1.ts'
import { routing, scenarios, startBenchUpstream } from './load.ts'
import { haproxy, nginx, rowsAgainst } from './peers.ts'
import { loadCore, type MeasuredProxy } from './process.ts'
import { withRig } from './rig.ts'

const measured = ['get', 'post', 'large'] as const

/** Writes the request of a scenario as a script of wrk. */
function writeScript(folder: string, name: (typeof measured)[number]): string {
  const [head = '', body = ''] = scenarios[name].request.toString('latin1').split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const [method, path] = first.split(' ')
  const headers = lines
    .filter((line) => !line.startsWith('content-length:'))
    // wrk adds a second Host unless it is written like this.
    .map((line) => line.replace(/^host/, 'Host').split(': '))
    .map(([field, value]) => `["${field}"] = "${value}"`)
  const script = [
    `wrk.method = "${method}"`,
    `wrk.path = "${path}"`,
    `wrk.headers = { ${headers.join(', ')} }`,
    ...(body === '' ? [] : [`wrk.body = "${body}"`]),
    `done = function(summary) io.write(summary.requests, " ", summary.errors.status, "\\n") end`,
  ]
  const file = join(folder, `${name}.lua`)
  writeFileSync(file, script.join('\n'))
  return file
}

/** Microseconds of the proxy's CPU for each response. */
async function costOf(proxy: MeasuredProxy, script: string, seconds: number): Promise<number> {
  const url = `http://127.0.0.1:${proxy.port}${routing.path}`
  const options = ['-t', '1', '-c', '64', '-d', `${seconds}s`, '-s', script, url]
  const [program = '', ...args] = pinned(loadCore, ['wrk', ...options])
  const before = proxy.cpuTime()
  const { stdout } = await promisify(execFile)(program, args)
  const spent = proxy.cpuTime() - before
  const [, count, failed] = /^(\d+) (\d+)$/m.exec(stdout) ?? []
  if (failed !== '0') throw new Error(`${proxy.name} failed under load:\n${stdout}`)
  return spent / 1000 / Number(count)
}

export default async function wrk(context: BenchContext): Promise<Row[]> {
  const { rounds, quick, note } = context
  if (spawnSync('wrk', ['-v']).error !== undefined) {
    note('wrk is absent: not on PATH (apt-get install wrk)')
    return []
  }
  return withRig(context, async (rig) => {
    const upstream = rig.use(await startBenchUpstream())
    const own = await rig.sluice(upstream.port)
    const peers = await rig.peers([
      await nginx(rig.folder(), upstream.port),
      await haproxy(rig.folder(), upstream.port),
      await envoy(rig.folder(), upstream.port),
    ])
    const running = [own, ...peers.running]
    for (const proxy of running) await check(proxy)
    const rows: Row[] = []
    for (const name of measured) {
      const script = writeScript(rig.folder(), name)
      // Compilers need some ten thousand requests.
      for (const proxy of running) await costOf(proxy, script, quick ? 2 : 6)
      const candidates = running.map(
        (proxy) => [proxy.name, () => costOf(proxy, script, quick ? 1 : 2)] as const,
      )
      const samples = await interleave(rounds, Object.fromEntries(candidates))
      const boundOf = (peer: string) => (peer === 'nginx' ? againstNginx[name] : undefined)
      rows.push(...rowsAgainst(peers, `proxy.wrk.${name}`, samples, boundOf))
    }
    return rows
  })
}
