import { objectText, parseObjectKey } from '../../../src/ground/model/names.ts'
import { linkTo, place } from '../../state/location.ts'
import { useModel } from '../../state/worker-client.ts'
import { HealthMark } from '../../ui/health.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { Conditions } from './conditions.tsx'
import { Policies } from './policies.tsx'
import { Changes, Manifest, Readers, Reads, Wire } from './tabs.tsx'

const tabs = [
  { id: 'status', title: 'Status', Tab: Conditions },
  { id: 'policies', title: 'Policies', Tab: Policies },
  { id: 'manifest', title: 'Manifest', Tab: Manifest },
  { id: 'reads', title: 'Reads', Tab: Reads },
  { id: 'readers', title: 'Read by', Tab: Readers },
  { id: 'changes', title: 'Changes', Tab: Changes },
  { id: 'wire', title: 'Wire', Tab: Wire },
] as const

/** Key of the object that the URL names; `_` stands for no namespace. */
function objectInPlace(): string {
  const [kind = '', namespace = '', name = ''] = place.value.rest
  return `${kind}/${namespace === '_' ? '' : namespace}/${name}`
}

export function ObjectPage() {
  const object = objectInPlace()
  const { tab = 'status', ...others } = place.value.params
  const shown = useModel('object', {
    object,
    derivations: tab === 'reads' || tab === 'readers' ? tab : undefined,
  })
  return (
    <Content shown={shown} what={`the object ${object}`}>
      {(answer) => (
        <article>
          <header class="title">
            <h1>{objectText(parseObjectKey(answer.object))}</h1>
            {answer.exists && <HealthMark health={answer.health} />}
            <span class="quiet">
              {answer.generation === undefined
                ? 'not in force at this moment'
                : `generation ${answer.generation} in force`}
            </span>
            <a href={linkTo('topology', [], { focus: answer.object })}>topology</a>
            <a href={linkTo('timeline', [], { subject: answer.object })}>timeline</a>
          </header>
          {!answer.exists && (
            <Empty>
              {answer.events.length > 0
                ? 'The object was deleted before this moment; its changes are below.'
                : answer.laterEvents > 0
                  ? 'The object does not exist yet at this moment: it appears in a later event.'
                  : 'The log knows nothing about this object.'}
            </Empty>
          )}
          {answer.refused !== undefined && (
            <div class="finding card">
              <strong>Generation {answer.refused.generation} was refused</strong>
              <ul>
                {answer.refused.problems.map(({ path, message }) => (
                  <li key={path + message}>
                    <code>{path}</code>: {message}
                  </li>
                ))}
              </ul>
            </div>
          )}
          <nav class="tabs" aria-label="Parts of the object">
            {tabs.map(({ id, title }) => (
              <a
                key={id}
                href={linkTo('object', place.value.rest, { ...others, tab: id })}
                aria-current={id === tab ? 'page' : undefined}
              >
                {title}
              </a>
            ))}
          </nav>
          {tabs.map(({ id, Tab }) => id === tab && <Tab key={id} {...answer} />)}
        </article>
      )}
    </Content>
  )
}
