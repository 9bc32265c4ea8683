/**
 * Many Gateways in one controller: 20 and 100, each with 20 routes and a proxy that the controller deploys,
 * in a real API server. Claim: what the controller spends, writes and keeps grows as the number of Gateways,
 * a restart writes nothing, and one more change costs the same with more of them.
 */

import { startApiServer } from '../../test/support/api-server.ts'
import {
  controllerRules,
  deployerRules,
  gateway,
  route,
  service,
  TestCluster,
} from '../../test/support/cluster.ts'
import { ControllerProcess } from '../../test/support/controller.ts'
import { deployedPlaces } from '../../test/support/deployed.ts'
import { allConditions, type Status } from '../../test/support/gateway.ts'
import { waitFor } from '../../test/support/wait-for.ts'
import type { BenchContext, Row } from '../harness.ts'
import { cpuTime, memoryOf } from '../proxy/process.ts'

const routesPerGateway = 20
const writesAtOnce = 16
/** More than a start with 100 Gateways takes on a slow machine. */
const patienceMs = 300_000

const gatewayName = (at: number) => `gateway-${at}`
const routeName = (of: number, at: number) => `route-${of}-${at}`

async function fill(cluster: TestCluster, gateways: number): Promise<void> {
  const objects = [service('shop')]
  for (let of = 0; of < gateways; of++) {
    objects.push(gateway(gatewayName(of)))
    for (let at = 0; at < routesPerGateway; at++)
      objects.push(route(routeName(of, at), gatewayName(of), 'shop'))
  }
  for (let from = 0; from < objects.length; from += writesAtOnce)
    await Promise.all(objects.slice(from, from + writesAtOnce).map((one) => cluster.apply(one)))
}

class Controlled {
  readonly cluster: TestCluster
  readonly controller: ControllerProcess
  readonly #gateways: number

  constructor(cluster: TestCluster, controller: ControllerProcess, gateways: number) {
    this.cluster = cluster
    this.controller = controller
    this.#gateways = gateways
  }

  /** CPU time of the controller in seconds. */
  cpu(): number {
    return cpuTime(this.controller) / 1e9
  }

  /** Statuses that this run of the controller has written. */
  writes(): Promise<number> {
    return this.controller.metric('sluice_status_writes_total', 'outcome="written"')
  }

  /** Resolves once every object has its status and every Gateway its Deployment. */
  async settled(): Promise<void> {
    const expected = { Gateway: this.#gateways, HTTPRoute: this.#gateways * routesPerGateway }
    for (const [kind, count] of Object.entries(expected)) {
      const path = this.cluster.collection(kind)
      await this.#until(`the status of every ${kind}`, path, count, isAccepted)
    }
    await this.#until('all Deployments', deployedPlaces.Deployment, this.#gateways, () => true)
    await this.resting()
  }

  #until(what: string, path: string, count: number, isDone: (object: Listed) => boolean) {
    const ask = async () => {
      const { body } = await this.cluster.server.request('GET', path)
      return (body.items as Listed[]).filter(isDone).length >= count
    }
    return waitFor(what, ask, patienceMs)
  }

  /** Resolves once the controller has used hardly any CPU for three seconds. */
  async resting(): Promise<void> {
    let [before, since] = [this.cpu(), performance.now()]
    await waitFor(
      'the controller to rest',
      () => {
        if (performance.now() - since < 3_000) return false
        const [now, last] = [this.cpu(), before]
        before = now
        since = performance.now()
        return now - last < 0.15
      },
      patienceMs,
    )
  }

  /** Milliseconds from the answer to an edit of a route until its status is about that generation. */
  async edit(revision: number): Promise<number> {
    const name = routeName(revision % this.#gateways, 7)
    const hostname = `revision-${revision}.example.com`
    await this.cluster.apply(route(name, gatewayName(revision % this.#gateways), 'shop', hostname))
    const begun = performance.now()
    await this.cluster.condition('HTTPRoute', name, 'Accepted=True')
    return performance.now() - begun
  }
}

interface Listed {
  readonly metadata: { readonly generation: number }
  readonly status?: Status
}

const isAccepted = ({ metadata, status }: Listed) =>
  allConditions(status).some(
    ({ type, status: value, observedGeneration }) =>
      type === 'Accepted' && value === 'True' && observedGeneration === metadata.generation,
  )

interface Figures {
  readonly cpu: number
  readonly writes: number
  readonly memory: number
  readonly edits: readonly number[]
  readonly restartCpu: number
  readonly restartWrites: number
}

async function measure(gateways: number): Promise<Figures> {
  const server = await startApiServer()
  const cluster = await new TestCluster(server).install()
  const rules = [...controllerRules(), ...deployerRules()]
  const controller = new ControllerProcess({
    kubeconfig: await cluster.account('controller', rules),
    env: { SLUICE_XDS_SERVICE_NAME: 'sluice', SLUICE_PROXY_IMAGE_TAG: '1.2.3' },
  })
  try {
    await fill(cluster, gateways)
    const controlled = new Controlled(cluster, await controller.launch(), gateways)
    await controlled.settled()
    const cpu = controlled.cpu()
    const writes = await controlled.writes()
    const edits: number[] = []
    for (let revision = 1; revision <= 7; revision++) edits.push(await controlled.edit(revision))
    await controlled.resting()
    const memory = memoryOf(controller.pid) / 1024 ** 2
    await controller.stop()
    await controller.start()
    await controlled.resting()
    const restartWrites = await controlled.writes()
    return { cpu, writes, memory, edits, restartCpu: controlled.cpu(), restartWrites }
  } finally {
    await controller.dispose()
    await server.stop()
  }
}

export default async function gateways({ quick, note }: BenchContext): Promise<Row[]> {
  const sizes = quick ? [4, 20] : [20, 100]
  const found: Figures[] = []
  for (const size of sizes) {
    found.push(await measure(size))
    note(`${size} Gateways measured`)
  }
  const [fewer, more] = found as [Figures, Figures]
  return sizes.flatMap((size, at): Row[] => {
    const own = at === 0 ? fewer : more
    const name = `${sizes[0]} Gateways`
    /** The larger size has five times as much of everything. */
    const row = (id: string, unit: string, figure: keyof Figures, atMost: number): Row => ({
      id: `gateways.${id}.${size}`,
      unit,
      own: [own[figure] as number],
      ...(at > 0 && { peer: { name, samples: [fewer[figure] as number] }, bound: { atMost } }),
    })
    return [
      row('start.cpu', 's', 'cpu', 6),
      row('status-writes', 'writes', 'writes', 6),
      row('resident', 'MB', 'memory', 5),
      row('restart.cpu', 's', 'restartCpu', 6),
      {
        id: `gateways.restart.status-writes.${size}`,
        unit: 'writes',
        own: [own.restartWrites],
        bound: { atMost: 0 },
      },
      { id: `gateways.edit.${size}`, unit: 'ms', own: own.edits },
    ]
  })
}
