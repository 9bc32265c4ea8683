/** Strategic merge patches of each kind of generated object, by rule; see overlays in deployer.test.ts. */
import type { OverlayName } from '../../src/control/desired/deployment/parameters.ts'

export interface OverlayCase {
  readonly rule: string
  readonly target: OverlayName
  readonly spec: Readonly<Record<string, unknown>>
}

const pod = (spec: object) => ({ template: { spec } })
const proxy = (fields: object) => pod({ containers: [{ name: 'proxy', ...fields }] })

export const overlayCases: readonly OverlayCase[] = [
  // Scalars.
  { rule: 'scalars', target: 'deployment', spec: { replicas: 3, revisionHistoryLimit: 1 } },
  {
    rule: 'scalars',
    target: 'deployment',
    spec: proxy({ image: 'registry.example.com/other:1' }),
  },
  { rule: 'scalars', target: 'service', spec: { type: 'NodePort' } },
  { rule: 'scalars', target: 'serviceAccount', spec: { automountServiceAccountToken: true } },
  { rule: 'scalars', target: 'podDisruptionBudget', spec: { maxUnavailable: '50%' } },
  { rule: 'scalars', target: 'horizontalPodAutoscaler', spec: { minReplicas: 2 } },
  { rule: 'scalars', target: 'deployment', spec: proxy({ args: ['proxy', '--workers', '2'] }) },
  { rule: 'scalars', target: 'daemonSet', spec: { minReadySeconds: 3 } },
  // Lists with merge keys.
  {
    rule: 'merge keys',
    target: 'daemonSet',
    spec: pod({ containers: [{ name: 'proxy', env: [{ name: 'RUST_LOG', value: 'debug' }] }] }),
  },
  {
    rule: 'merge keys',
    target: 'deployment',
    spec: pod({
      containers: [
        { name: 'first', image: 'a:1' },
        { name: 'sidecar', tty: true },
      ],
    }),
  },
  {
    rule: 'merge keys',
    target: 'deployment',
    spec: proxy({
      env: [
        { name: 'RUST_LOG', value: 'debug' },
        { name: 'MORE', value: 'x' },
        { name: 'POD_NAME', value: 'fixed', valueFrom: null },
      ],
    }),
  },
  {
    rule: 'merge keys',
    target: 'deployment',
    spec: {
      ...pod({
        volumes: [
          { name: 'tmp', emptyDir: { sizeLimit: '1Gi' } },
          { name: 'more', emptyDir: {} },
        ],
        containers: [
          {
            name: 'proxy',
            volumeMounts: [
              { name: 'more', mountPath: '/more' },
              { mountPath: '/tmp', name: 'tmp', readOnly: true },
            ],
            ports: [
              { containerPort: 8080, name: 'web' },
              { containerPort: 15020, name: 'stats' },
            ],
          },
        ],
      }),
    },
  },
  {
    rule: 'merge keys',
    target: 'deployment',
    spec: pod({
      imagePullSecrets: [{ name: 'mirror' }],
      hostAliases: [{ ip: '192.0.2.1', hostnames: ['a.example.com'] }],
      topologySpreadConstraints: [
        { topologyKey: 'zone', maxSkew: 2 },
        { topologyKey: 'host', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' },
      ],
    }),
  },
  {
    rule: 'merge keys',
    target: 'service',
    spec: {
      ports: [
        { port: 8080, nodePort: 30_080 },
        { port: 9000, name: 'more' },
      ],
    },
  },
  {
    rule: 'merge keys',
    target: 'serviceAccount',
    spec: { secrets: [{ name: 'b' }, { name: 'c' }] },
  },
  {
    rule: 'merge keys',
    target: 'serviceAccount',
    spec: { imagePullSecrets: [{ name: 'only' }] },
  },
  // Deleting.
  {
    rule: 'deleting',
    target: 'deployment',
    spec: pod({
      containers: [{ name: 'sidecar', $patch: 'delete' }],
      nodeSelector: { $patch: 'delete' },
    }),
  },
  {
    rule: 'deleting',
    target: 'deployment',
    spec: proxy({
      env: [
        { name: 'RUST_LOG', $patch: 'delete' },
        { name: 'ABSENT', $patch: 'delete' },
      ],
      resources: { $patch: 'delete' },
    }),
  },
  {
    rule: 'deleting',
    target: 'service',
    spec: {
      ports: [
        { port: 8080, $patch: 'delete' },
        { port: 443, name: 'tls' },
      ],
    },
  },
  {
    rule: 'deleting',
    target: 'serviceAccount',
    spec: { secrets: [{ name: 'a', $patch: 'delete' }] },
  },
  // Null.
  {
    rule: 'null',
    target: 'deployment',
    spec: {
      revisionHistoryLimit: null,
      ...proxy({ startupProbe: null, securityContext: { runAsUser: null }, absent: null }),
    },
  },
  {
    rule: 'null',
    target: 'service',
    spec: { externalTrafficPolicy: null, type: 'ClusterIP' },
  },
  { rule: 'null', target: 'serviceAccount', spec: { secrets: null } },
  {
    rule: 'null',
    target: 'podDisruptionBudget',
    spec: { maxUnavailable: null, minAvailable: 1 },
  },
  { rule: 'null', target: 'horizontalPodAutoscaler', spec: { metrics: null } },
  // Replacing a map.
  {
    rule: 'replacing a map',
    target: 'deployment',
    spec: proxy({ resources: { $patch: 'replace', limits: { cpu: '2' } } }),
  },
  {
    rule: 'replacing a map',
    target: 'deployment',
    spec: pod({ nodeSelector: { $patch: 'replace', only: 'this' } }),
  },
  {
    rule: 'replacing a map',
    target: 'service',
    spec: { selector: { $patch: 'replace', app: 'other' } },
  },
  {
    rule: 'replacing a map',
    target: 'horizontalPodAutoscaler',
    spec: { behavior: { $patch: 'replace', scaleDown: { stabilizationWindowSeconds: 60 } } },
  },
  // Replacing a list.
  {
    rule: 'replacing a list',
    target: 'deployment',
    spec: proxy({ env: [{ $patch: 'replace' }, { name: 'ONLY', value: '1' }] }),
  },
  {
    rule: 'replacing a list',
    target: 'deployment',
    spec: pod({ containers: [{ name: 'only', image: 'a:1' }, { $patch: 'replace' }] }),
  },
  {
    rule: 'replacing a list',
    target: 'service',
    spec: { ports: [{ $patch: 'replace' }, { port: 1, name: 'one' }] },
  },
  {
    rule: 'replacing a list',
    target: 'serviceAccount',
    spec: { secrets: [{ $patch: 'replace' }, { name: 'only' }] },
  },
  // What else strategic merge patch knows.
  {
    rule: 'order',
    target: 'deployment',
    spec: pod({
      '$setElementOrder/containers': [{ name: 'sidecar' }, { name: 'new' }, { name: 'proxy' }],
      containers: [{ name: 'new', image: 'a:1' }],
    }),
  },
  {
    rule: 'retained keys',
    target: 'deployment',
    spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
  },
  {
    rule: 'retained keys',
    target: 'deployment',
    spec: pod({
      volumes: [{ name: 'tmp', $retainKeys: ['name', 'configMap'], configMap: { name: 'edge' } }],
    }),
  },
  {
    rule: 'lists of scalars',
    target: 'deployment',
    spec: proxy({
      '$deleteFromPrimitiveList/args': ['--config'],
      securityContext: { capabilities: { add: ['NET_ADMIN'] } },
    }),
  },
]
