/** What `sluice controller` deploys, in a real API server. */
import { describe, expect, it } from 'vitest'
import { gateway } from '../support/cluster.ts'
import { containerOf, deployedPlaces, parameters, withParameters } from '../support/deployed.ts'
import { sluice } from '../support/gateway.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { always, deployerParts, plain, useDeployer } from './deployer-rig.ts'

describeWithParts(deployerParts, 'deployed proxies', () => {
  const { cluster, controller, deployed } = useDeployer()

  it('creates the objects of a Gateway, owned by the Gateway', async () => {
    await cluster.apply(gateway('plain'))
    const { metadata } = await cluster.get('Gateway', 'plain')
    const owner = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      name: 'plain',
      uid: metadata.uid,
      controller: true,
    }
    for (const kind of always) {
      const object = await deployed.until(kind, 'plain')
      expect(object.metadata.ownerReferences).toEqual([owner])
      expect(object.metadata.labels).toMatchObject({
        'app.kubernetes.io/managed-by': 'sluice',
        'gateway.networking.k8s.io/gateway-name': 'plain',
        'gateway.networking.k8s.io/gateway-class-name': 'agentgateway',
      })
    }
    const image = 'ghcr.io/sluice-dev/sluice-proxy:1.2.3'
    expect(containerOf(await deployed.until('Deployment', 'plain')).image).toBe(image)
    expect(await deployed.read('PodDisruptionBudget', 'plain')).toBeUndefined()
    const { spec } = await deployed.until('Service', 'plain')
    expect(spec.type).toBe('LoadBalancer')
    expect(spec.ports).toMatchObject([{ name: 'listener-8080', port: 8080, targetPort: 8080 }])
  })

  it('sets the Gateway address from its Service, and the Service ports from the listeners', async () => {
    await cluster.condition('Gateway', 'plain', 'Programmed=False/Pending')
    const address = () =>
      cluster.status('Gateway', 'plain').then((status) => {
        const [first] = (status as never as { addresses?: { value: string }[] }).addresses ?? []
        return first?.value
      })
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } }
    await deployed.patch('Service', 'plain/status', { status })
    await waitFor('the address', async () => (await address()) === '192.0.2.7')
    const listeners = [
      { name: 'http', port: 8081, protocol: 'HTTP' },
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'own', port: 15021, protocol: 'HTTP' },
    ]
    await cluster.apply(parameters('inside', { service: { spec: { type: 'ClusterIP' } } }))
    await cluster.apply(gateway('plain', 'default', withParameters('inside', { listeners })))
    const { spec } = await deployed.until('Service', 'plain', (one) => one.spec.ports.length === 2)
    expect(spec.ports.map(({ name }: { name: string }) => name)).toEqual([
      'udp-53',
      'listener-8081',
    ])
    await waitFor('the address', async () => (await address()) === spec.clusterIP)
    const text = JSON.stringify(await cluster.status('Gateway', 'plain'))
    expect(text).toContain("port 15021 is the proxy's own")
  })

  describe('GatewayParameters [endpoint.GatewayParameters]', () => {
    it('shape what is deployed, field by field [GatewayParameters.spec] [GatewayParameters.configs] [GatewayParameters.logging] [ParametersLogging.level] [GatewayParameters.image] [Image.registry] [Image.repository] [Image.tag] [Image.pullPolicy] [GatewayParameters.env] [GatewayParameters.resources] [GatewayParameters.mesh] [MeshSpec.caAddress] [MeshSpec.trustDomain]', async () => {
      await cluster.apply(
        parameters('tuned', {
          logging: { level: 'debug', format: 'json' },
          image: { registry: 'r.example.com', repository: 'p', tag: 't', pullPolicy: 'Never' },
          env: [{ name: 'EXTRA', value: 'yes' }],
          resources: { requests: { cpu: '0.5' }, limits: { memory: '1Gi' } },
          shutdown: { min: 3, max: 40 },
          rawConfig: { config: { maxConnections: 10, logging: { format: 'text' } } },
          mesh: {},
        }),
      )
      await cluster.apply(gateway('tuned', 'default', withParameters('tuned')))
      const deployment = await deployed.until('Deployment', 'tuned')
      const proxy = containerOf(deployment)
      expect(proxy).toMatchObject({
        image: 'r.example.com/p:t',
        imagePullPolicy: 'Never',
        resources: { requests: { cpu: '500m' }, limits: { memory: '1Gi' } },
      })
      expect(Object.fromEntries(proxy.env.map(({ name, value }) => [name, value]))).toMatchObject({
        EXTRA: 'yes',
        RUST_LOG: 'debug',
        CONNECTION_MIN_TERMINATION_DEADLINE: '3s',
        TERMINATION_GRACE_PERIOD_SECONDS: '40',
        CA_ADDRESS: 'https://istiod.istio-system.svc:15012',
        TRUST_DOMAIN: 'cluster.local',
      })
      expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBe(40)
      const config = (await deployed.until('ConfigMap', 'tuned')).data?.['config.yaml']
      expect(config).toContain('format: json')
      expect(config).toContain('maxConnections: 10')
      const { message } = await cluster.condition('Gateway', 'tuned', 'Accepted=True')
      expect(message).toContain('HBONE is not supported yet')
    })

    it('name an image by its digest, and give a mesh its own names [Image.digest]', async () => {
      const digest = `sha256:${'0'.repeat(64)}`
      const mesh = { caAddress: 'https://ca.example.com:15012', trustDomain: 'example.org' }
      await cluster.apply(parameters('tuned', { image: { tag: 't', digest }, mesh }))
      const proxy = containerOf(
        await deployed.until('Deployment', 'tuned', (one) => containerOf(one).image.includes('@')),
      )
      expect(proxy.image).toBe(`ghcr.io/sluice-dev/sluice-proxy@${digest}`)
      expect(proxy.env).toContainEqual({ name: 'CA_ADDRESS', value: mesh.caAddress })
      expect(proxy.env).toContainEqual({ name: 'TRUST_DOMAIN', value: mesh.trustDomain })
    })

    it('add and remove a disruption budget and an autoscaler [GatewayParameters.podDisruptionBudget] [GatewayParameters.horizontalPodAutoscaler]', async () => {
      const asked = {
        podDisruptionBudget: {},
        horizontalPodAutoscaler: { spec: { maxReplicas: 3 } },
      }
      const counted = (more: object) =>
        parameters('tuned', { ...asked, deployment: { spec: { replicas: 2, ...more } } })
      await cluster.apply(counted({}))
      const budget = await deployed.until('PodDisruptionBudget', 'tuned')
      const deployment = await deployed.until('Deployment', 'tuned')
      expect(budget.spec.selector).toEqual(deployment.spec.selector)
      const scaler = await deployed.until('HorizontalPodAutoscaler', 'tuned')
      const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'tuned' }
      expect(scaler.spec).toMatchObject({ scaleTargetRef: target, maxReplicas: 3 })
      // The autoscaler's number stands, whatever the overlay begins with.
      await deployed.patch('Deployment', 'tuned', { spec: { replicas: 3 } })
      await cluster.apply(counted({ paused: true }))
      const { spec } = await deployed.until('Deployment', 'tuned', (one) => one.spec.paused)
      expect(spec.replicas).toBe(3)
      await cluster.apply(parameters('tuned', plain))
      await deployed.gone('PodDisruptionBudget', 'tuned')
      await deployed.gone('HorizontalPodAutoscaler', 'tuned')
    })

    it('change the strategy of a Deployment that the API server has filled in', async () => {
      const strategy = { type: 'Recreate' }
      await cluster.apply(parameters('tuned', { deployment: { spec: { strategy } } }))
      const { spec } = await deployed.until(
        'Deployment',
        'tuned',
        (one) => one.spec.strategy.type === 'Recreate',
      )
      expect(spec.strategy).toEqual(strategy)
      await cluster.apply(parameters('tuned', plain))
      await deployed.until(
        'Deployment',
        'tuned',
        (one) => one.spec.strategy.type === 'RollingUpdate',
      )
    })

    it('can be listed and deleted; a Gateway with a deleted reference keeps its objects', async () => {
      const { body } = await cluster.server.request('GET', cluster.collection('GatewayParameters'))
      expect(body).toMatchObject({ kind: 'GatewayParametersList', items: [{}, {}] })
      const before = await deployed.versions('tuned')
      await cluster.delete('GatewayParameters', 'tuned')
      const refused = 'Accepted=False/InvalidParameters'
      const { message } = await cluster.condition('Gateway', 'tuned', refused)
      expect(message).toBe('GatewayParameters default/tuned does not exist')
      expect(await deployed.versions('tuned')).toEqual(before)
      await cluster.apply(parameters('tuned', plain))
      await cluster.condition('Gateway', 'tuned', 'Accepted=True')
    })

    it('are refused by the API server if they are contradictory [limit.shutdown-min-and-max]', async () => {
      const year = 31_536_000
      const tried = async (shutdown: object) => {
        const path = `${cluster.path('GatewayParameters', 'tuned')}?dryRun=All`
        return (await cluster.server.request('PATCH', path, { spec: { shutdown } })).status
      }
      expect(await tried({ min: 0, max: year })).toBe(200)
      expect(await tried({ min: 0, max: year + 1 })).toBe(422)
      expect(await tried({ min: -1, max: year })).toBe(422)
      expect(await tried({ min: 2, max: 1 })).toBe(422)
    })

    it('have a status that the controller does not write [GatewayParameters.status]', async () => {
      expect((await cluster.get('GatewayParameters', 'tuned')).status).toBeUndefined()
    })

    it('apply at the class first, then at the Gateway, by every rule of merging [overlay.1] [overlay.2] [overlay.3] [overlay.4] [overlay.5] [overlay.6] [GatewayParameters.deployment] [GatewayParameters.service] [GatewayParameters.serviceAccount] [KubernetesResourceOverlay.metadata] [KubernetesResourceOverlay.spec] [GatewayParameters.env.delete]', async () => {
      const toleration = { key: 'dedicated', operator: 'Equal', value: 'class' }
      await cluster.apply(
        parameters('of-class', {
          env: [{ name: 'LEVEL', value: 'class' }],
          service: { metadata: { labels: { level: 'class', by: 'class' } } },
          deployment: {
            spec: {
              replicas: 4,
              minReadySeconds: 1,
              template: {
                spec: {
                  nodeSelector: { disk: 'ssd', zone: 'a' },
                  tolerations: [toleration, { key: 'spot', operator: 'Exists' }],
                  hostAliases: [{ ip: '192.0.2.1', hostnames: ['a.example.com'] }],
                },
              },
            },
          },
        }),
      )
      const proxy = { name: 'proxy', env: [{ name: 'RUST_LOG', $patch: 'delete' }] }
      await cluster.apply(
        parameters('of-gateway', {
          env: [{ name: 'LEVEL', value: 'gateway' }],
          service: { metadata: { labels: { level: 'gateway' } }, spec: { type: 'NodePort' } },
          serviceAccount: { spec: { imagePullSecrets: [{ name: 'mirror' }] } },
          deployment: {
            spec: {
              replicas: null,
              minReadySeconds: 2,
              template: {
                spec: {
                  nodeSelector: { $patch: 'replace', only: 'this' },
                  tolerations: [{ key: 'dedicated', value: 'gateway' }],
                  hostAliases: [{ $patch: 'replace' }, { ip: '192.0.2.2', hostnames: ['b'] }],
                  containers: [proxy, { name: 'sidecar', image: 'sidecar:1' }],
                },
              },
            },
          },
        }),
      )
      await cluster.apply({
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'GatewayClass',
        metadata: { name: 'levels' },
        spec: {
          controllerName: 'sluice.dev/gateway-controller',
          parametersRef: {
            group: 'sluice.dev',
            kind: 'GatewayParameters',
            name: 'of-class',
            namespace: 'default',
          },
        },
      })
      const more = { gatewayClassName: 'levels' }
      await cluster.apply(gateway('levels', 'default', withParameters('of-gateway', more)))
      const deployment = await deployed.until('Deployment', 'levels')
      expect(deployment.spec).toMatchObject({ replicas: 1, minReadySeconds: 2 })
      const { spec } = deployment.spec.template
      expect(spec.nodeSelector).toEqual({ only: 'this' })
      expect(spec.tolerations).toEqual([
        { ...toleration, value: 'gateway' },
        { key: 'spot', operator: 'Exists' },
      ])
      expect(spec.hostAliases).toEqual([{ ip: '192.0.2.2', hostnames: ['b'] }])
      const names = spec.containers.map(({ name }: { name: string }) => name)
      expect(names).toEqual(['proxy', 'sidecar'])
      const { env } = containerOf(deployment)
      expect(env).toContainEqual({ name: 'LEVEL', value: 'gateway' })
      expect(env.map(({ name }) => name)).not.toContain('RUST_LOG')
      const service = await deployed.until('Service', 'levels')
      expect(service.metadata.labels).toMatchObject({ level: 'gateway', by: 'class' })
      expect(service.spec.type).toBe('NodePort')
      const account = await deployed.until('ServiceAccount', 'levels')
      expect(account).toMatchObject({ imagePullSecrets: [{ name: 'mirror' }] })
    })

    it('drop nulls that the server does not apply, and keep directives [overlay.3] [overlay.4]', async () => {
      // A merge patch, as client-side apply sends it: null is its own way to remove.
      const container = { name: 'sidecar', $patch: 'delete' }
      const template = { spec: { containers: [container], nodeSelector: null } }
      const spec = { replicas: null, minReadySeconds: 3, template }
      const path = cluster.path('GatewayParameters', 'of-gateway')
      await cluster.server.request('PATCH', path, { spec: { deployment: { spec } } })
      const deployment = await deployed.until(
        'Deployment',
        'levels',
        (one) => one.spec.minReadySeconds === 3,
      )
      expect(deployment.spec.replicas).toBe(4)
      expect(deployment.spec.template.spec.containers).toHaveLength(1)
      expect(deployment.spec.template.spec.nodeSelector).toEqual({ disk: 'ssd', zone: 'a' })
    })
  })

  describe('changes by others', () => {
    it('are reverted in fields of the controller: deleted, changed, or taken over', async () => {
      await cluster.server.request('DELETE', `${deployedPlaces.Service}/tuned`)
      await deployed.until('Service', 'tuned')
      const template = { spec: { containers: [{ name: 'proxy', image: 'theirs:1' }] } }
      const body = { apiVersion: 'apps/v1', spec: { template } }
      const { status } = await deployed.takeOver('Deployment', 'tuned', body)
      expect(status).toBe(200)
      await deployed.until('Deployment', 'tuned', (one) =>
        containerOf(one).image.startsWith('ghcr.io/sluice-dev/'),
      )
      const label = 'app.kubernetes.io/managed-by'
      await deployed.patch('Service', 'tuned', { metadata: { labels: { [label]: null } } })
      await deployed.until('Service', 'tuned', (one) => one.metadata.labels[label] === 'sluice')
    })

    it('are kept in other fields, and nothing correct is rewritten', async () => {
      await deployed.patch('Deployment', 'tuned', {
        spec: { replicas: 5 },
        metadata: { annotations: { 'example.com/note': 'theirs' } },
      })
      const before = await deployed.versions('tuned')
      await controller.stop()
      await controller.start()
      await cluster.apply(gateway('after', 'default'))
      await deployed.until('Deployment', 'after')
      expect(await deployed.versions('tuned')).toEqual(before)
      expect((await deployed.until('Deployment', 'tuned')).spec.replicas).toBe(5)
      const written = await controller.metric('sluice_deployment_writes_total')
      expect(written, 'what the new Gateway needs, and no more').toBe(4)
    })

    it('to a foreign object of the same name are kept, and the Gateway reports the conflict', async () => {
      const theirs = { metadata: { name: 'taken' }, data: { theirs: 'x' } }
      await cluster.server.request('POST', deployedPlaces.ConfigMap, theirs)
      await cluster.apply(gateway('taken'))
      const failed = 'Programmed=False/DeploymentFailed'
      const { message } = await cluster.condition('Gateway', 'taken', failed)
      expect(message).toContain("ConfigMap default/taken exists and is not this Gateway's")
      expect((await deployed.until('ConfigMap', 'taken')).data).toEqual({ theirs: 'x' })
      expect(await deployed.read('Deployment', 'taken')).toBeUndefined()
    })
  })

  describe('a deployment that fails', () => {
    it('leaves everything unchanged if the API server refuses an object, and names it', async () => {
      const before = await deployed.versions('tuned')
      const wrong = { spec: { template: { spec: { containers: [{ name: 'more' }] } } } }
      const service = { spec: { externalTrafficPolicy: 'Local' } }
      await cluster.apply(parameters('tuned', { deployment: wrong, service }))
      const failed = 'Programmed=False/DeploymentFailed'
      const { message } = await cluster.condition('Gateway', 'tuned', failed)
      expect(message).toMatch(/Deployment tuned: .*containers\[\d\]\.image: Required value/)
      expect(await deployed.versions('tuned')).toEqual(before)
      const { stdout } = await sluice('log', '--log-file', controller.logFile)
      expect(stdout).toContain('deployment.failed')
      // To a field of another type the API server answers 500, as to troubles that pass.
      const mistyped = {
        spec: { template: { spec: { containers: [{ name: 'more', image: true }] } } },
      }
      await cluster.apply(parameters('tuned', { deployment: mistyped, service }))
      await waitFor('the name of the mistyped field', async () => {
        const { message } = await cluster.condition('Gateway', 'tuned', failed)
        return message.includes('.image: expected string')
      })
      expect(await deployed.versions('tuned')).toEqual(before)
      await cluster.apply(parameters('tuned', { service }))
      await deployed.until('Service', 'tuned', (one) => one.spec.externalTrafficPolicy === 'Local')
      await waitFor('the end of the failure', async () => {
        const { conditions = [] } = (await cluster.status('Gateway', 'tuned')) ?? {}
        return conditions.some(({ type, reason }) => type === 'Programmed' && reason === 'Pending')
      })
    })

    it('keeps the running objects if an overlay is invalid, and replay shows the reason', async () => {
      const before = await deployed.versions('tuned')
      const nameless = { spec: { template: { spec: { containers: [{ image: 'x' }] } } } }
      await cluster.apply(parameters('tuned', { deployment: nameless }))
      const refused = 'Accepted=False/InvalidParameters'
      const { message } = await cluster.condition('Gateway', 'tuned', refused)
      expect(message).toContain('spec.deployment.spec.template.spec.containers[0]: name is missing')
      expect(await deployed.versions('tuned')).toEqual(before)
      const { logFile } = controller
      const { stdout } = await sluice('explain', 'gateway', 'default/tuned', '--log-file', logFile)
      expect(stdout).toContain('GatewayParameters default/tuned')
      const { code } = await sluice('replay', '--log-file', logFile)
      expect(code).toBe(0)
      await cluster.apply(parameters('tuned', plain))
      await cluster.condition('Gateway', 'tuned', 'Accepted=True')
    })

    it('is not created again for a Gateway that is being deleted', async () => {
      await deployed.until('Deployment', 'after')
      const path = cluster.path('Gateway', 'after')
      const hold = { metadata: { finalizers: ['example.com/hold'] } }
      await cluster.server.request('PATCH', path, hold)
      await cluster.server.request('DELETE', path)
      await cluster.server.request('DELETE', `${deployedPlaces.Service}/after`)
      await cluster.apply(gateway('later'))
      await deployed.until('Deployment', 'later')
      expect(await deployed.read('Service', 'after')).toBeUndefined()
      await cluster.server.request('PATCH', path, { metadata: { finalizers: [] } })
    })

    it('removes its objects if others run the proxies', async () => {
      const addresses = [{ type: 'Hostname', value: 'edge.example.com' }]
      await cluster.apply(gateway('later', 'default', { addresses }))
      for (const kind of always) await deployed.gone(kind, 'later')
    })
  })
})
