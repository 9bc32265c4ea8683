import { objectText, parseObjectKey } from '../../../src/ground/model/names.ts'
import { place } from '../../state/location.ts'
import { useModel } from '../../state/worker-client.ts'
import { Filters } from '../../ui/filters.tsx'
import { HealthMark } from '../../ui/health.tsx'
import { ObjectLink } from '../../ui/links.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { VirtualList } from '../../ui/virtual-list.tsx'

export function Objects() {
  const { text = '', kind = '', health = '' } = place.value.params
  const shown = useModel('objects', { text, kind, health })
  return (
    <Content shown={shown} what="objects">
      {({ rows, total, kinds }) => (
        <section class="card fill">
          <Filters
            filters={[
              {
                type: 'text',
                name: 'text',
                label: 'Text',
                hint: 'part of kind, namespace or name',
              },
              {
                type: 'choice',
                name: 'kind',
                label: 'Kind',
                options: kinds.map(([name, count]) => [name, `${name} (${count})`]),
              },
              {
                type: 'choice',
                name: 'health',
                label: 'Health',
                options: [['bad', 'with problems']],
              },
            ]}
            count={[rows.length, total]}
          />
          {rows.length === 0 ? (
            <Empty>
              {total === 0
                ? 'No object exists at this moment.'
                : `None of ${total} objects matches the filter.`}
            </Empty>
          ) : (
            <VirtualList
              label="Objects"
              count={rows.length}
              rowHeight={32}
              row={(index) => {
                const row = rows[index]
                return (
                  row && (
                    <>
                      <span role="cell" class="cell-health">
                        <HealthMark health={row.health} isShort />
                      </span>
                      <span
                        role="cell"
                        class="cell-object"
                        title={objectText(parseObjectKey(row.object))}
                      >
                        <ObjectLink object={row.object} />
                      </span>
                      <span role="cell" class="cell-detail quiet" title={row.summary}>
                        {row.summary}
                      </span>
                    </>
                  )
                )
              }}
            />
          )}
        </section>
      )}
    </Content>
  )
}
