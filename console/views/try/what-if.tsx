import { linkTo } from '../../state/location.ts'
import { Empty } from '../../ui/states.tsx'

/** What `sluice what-if -o json` prints, as far as it is shown. */
export interface WhatIf {
  readonly objects: Readonly<Record<'added' | 'changed' | 'removed', readonly Ref[]>>
  readonly refused: readonly (Ref & {
    readonly problems: readonly { readonly path: string; readonly message: string }[]
  })[]
  readonly conditions: readonly {
    readonly object: Ref
    readonly type: string
    readonly from: Value | null
    readonly to: Value | null
  }[]
  readonly requests: {
    readonly total: number
    readonly unchanged: number
    readonly changed: number
    readonly undecided: number
    readonly groups: readonly {
      readonly kinds: readonly string[]
      readonly cause: string
      readonly from: string
      readonly to: string
      readonly count: number
      readonly examples: readonly Example[]
    }[]
    readonly undecidedGroups: readonly {
      readonly reason: string
      readonly count: number
      readonly examples: readonly Example[]
    }[]
  }
}

interface Ref {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

interface Value {
  readonly status: string
  readonly reason: string
}

interface Example {
  readonly id: string
  readonly method: string
  readonly host: string
  readonly path: string
}

const refText = ({ kind, namespace, name }: Ref) => `${kind} ${namespace}/${name}`
const valueText = (value: Value | null) =>
  value === null ? 'not set' : `${value.status} (${value.reason})`

/** What a change would do to objects, conditions and recorded requests. */
export function WhatIfReport({ report }: { report: WhatIf }) {
  const { objects, refused, conditions, requests } = report
  const changed = Object.entries(objects).flatMap(([change, refs]) =>
    refs.map((ref) => `${refText(ref)} is ${change}`),
  )
  return (
    <section class="card" aria-labelledby="what-if">
      <h2 id="what-if">What would change</h2>
      {changed.length + refused.length === 0 && <Empty>The manifests change no object.</Empty>}
      <ul>
        {changed.map((text) => (
          <li key={text}>{text}</li>
        ))}
        {refused.map((ref) => (
          <li key={refText(ref)} class="bad">
            {refText(ref)} is invalid, and its last valid version stays:{' '}
            {ref.problems.map(({ path, message }) => `${path} ${message}`).join('; ')}
          </li>
        ))}
        {conditions.map(({ object, type, from, to }) => (
          <li key={`${refText(object)} ${type} ${valueText(from)}`}>
            {refText(object)} {type}: {valueText(from)} → {valueText(to)}
          </li>
        ))}
      </ul>
      <h2>Recorded requests</h2>
      <p>
        {requests.total} recorded: {requests.unchanged} unchanged, {requests.changed} changed,{' '}
        {requests.undecided} undecided.
      </p>
      {requests.groups.map(({ kinds, cause, from, to, count, examples }) => (
        <div key={`${cause} ${from} ${to}`} class="finding">
          <strong>
            {count} × {from} → {to}
          </strong>{' '}
          <span class="quiet">{kinds.join(', ')}</span>
          <p>because {cause}</p>
          <Examples examples={examples} />
        </div>
      ))}
      {requests.undecidedGroups.map(({ reason, count, examples }) => (
        <div key={reason} class="finding warning">
          <strong>{count} undecided</strong>
          <p>{reason}</p>
          <Examples examples={examples} />
        </div>
      ))}
    </section>
  )
}

const Examples = ({ examples }: { examples: readonly Example[] }) => (
  <ul>
    {examples.map(({ id, method, host, path }) => (
      <li key={id}>
        <a href={linkTo('request', [id])}>
          {method} {host}
          {path}
        </a>
      </li>
    ))}
  </ul>
)
