/** The steps of a request, with the object that decided each. */
import { objectLink } from '../state/location.ts'
import { EventLink } from './links.tsx'

interface ShownStep {
  readonly step: string
  readonly verdict: string
  readonly reason?: string
  /** `Kind namespace/name`. */
  readonly objects: readonly string[]
  readonly generation?: number
  /** Position of the event that put the object in force. */
  readonly event?: number
}

const marks: Readonly<Record<string, readonly [mark: string, health: string]>> = {
  pass: ['●', 'ok'],
  answer: ['✖', 'problem'],
  undecided: ['▲', 'warning'],
}

export const VerdictMark = ({ verdict }: { verdict: string }) => {
  const [mark, health] = marks[verdict] ?? ['○', 'none']
  return (
    <span class={`health ${health}`}>
      <span aria-hidden="true">{mark}</span> {verdict}
    </span>
  )
}

interface StepTableProps {
  readonly steps: readonly ShownStep[]
  /** Position at which objects are shown. */
  readonly at: number | undefined
}

export function StepTable({ steps, at }: StepTableProps) {
  return (
    <table>
      <thead>
        <tr>
          <th>Step</th>
          <th>Verdict</th>
          <th>Object</th>
          <th>Why</th>
        </tr>
      </thead>
      <tbody>
        {steps.map(({ step, verdict, reason, objects, generation, event }) => (
          <tr key={`${step} ${objects[0]}`}>
            <td class="nowrap">{step}</td>
            <td class="nowrap">
              <VerdictMark verdict={verdict} />
            </td>
            <td>
              {objects.map((object) => (
                <div key={object}>
                  <NamedObject object={object} at={at} />
                </div>
              ))}
              {generation !== undefined && <span class="quiet">generation {generation} </span>}
              {event !== undefined && <EventLink position={event} />}
            </td>
            <td>{reason}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** A link to an object that is named as `Kind namespace/name`. */
export function NamedObject({ object, at }: { object: string; at: number | undefined }) {
  const [, kind = '', namespace = '', name = ''] = /^(\S+) ([^/]*)\/(.*)$/.exec(object) ?? []
  if (name === '') return <>{object}</>
  return <a href={objectLink(`${kind}/${namespace}/${name}`, {}, at)}>{object}</a>
}
