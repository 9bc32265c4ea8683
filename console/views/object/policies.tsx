import { objectKey } from '../../../src/ground/model/names.ts'
import { EventLink, ObjectLink } from '../../ui/links.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty } from '../../ui/states.tsx'
import type { ObjectAnswer } from './answer.ts'

type Group = ObjectAnswer['policies'][number]
type Field = Group['fields'][number]

export function Policies({ policies }: ObjectAnswer) {
  if (policies.length === 0) return <Empty>No policy applies here at this moment.</Empty>
  return (
    <>
      {policies.map(({ place, fields }) => (
        <section key={place} class="card">
          <h2>{place}</h2>
          <Scroll label="Policies">
            <table>
              <thead>
                <tr>
                  <th>Field</th>
                  <th>State</th>
                  <th>Policy</th>
                  <th>Attached to</th>
                  <th>Value</th>
                </tr>
              </thead>
              <tbody>
                {fields.map((field) => (
                  <FieldRows key={keyOf(field)} {...field} />
                ))}
              </tbody>
            </table>
          </Scroll>
        </section>
      ))}
    </>
  )
}

const keyOf = ({ section, field, phase }: Field) => `${section}.${field} ${phase}`

/** The policies of a field, most specific first: what is in force stands above what it overrides. */
function FieldRows({ section, field, phase, policies }: Field) {
  const name = `${section}.${field}${phase === 'PreRouting' ? ' (before routing)' : ''}`
  return (
    <>
      {[...policies]
        .reverse()
        .map(({ policy, attachedTo, state, unenforceable, config, origin }) => (
          <tr key={attachedTo + objectKey(policy)} class={state === 'in force' ? '' : 'overridden'}>
            <td>{name}</td>
            <td class="nowrap">
              {unenforceable === undefined ? state : `${state}: answers 500, ${unenforceable}`}
            </td>
            <td>
              <ObjectLink object={objectKey(policy)} />{' '}
              {origin?.event !== undefined && origin.event > 0 && (
                <EventLink position={origin.event} />
              )}
            </td>
            <td>{attachedTo}</td>
            <td>
              <code class="config">{JSON.stringify(config, undefined, 1)}</code>
            </td>
          </tr>
        ))}
    </>
  )
}
