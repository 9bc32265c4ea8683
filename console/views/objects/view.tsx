import { place, setParams } from '../../app/location.ts'
import { useModel } from '../../app/worker-client.ts'
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
          <form class="filters" onSubmit={(event) => event.preventDefault()}>
            <label>
              Text
              <input
                type="search"
                value={text}
                placeholder="part of kind, namespace or name"
                onInput={({ currentTarget }) => setParams({ text: currentTarget.value })}
              />
            </label>
            <label>
              Kind
              <select
                value={kind}
                onChange={({ currentTarget }) => setParams({ kind: currentTarget.value })}
              >
                <option value="">all</option>
                {kinds.map(([name, count]) => (
                  <option key={name} value={name}>
                    {name} ({count})
                  </option>
                ))}
              </select>
            </label>
            <label>
              Health
              <select
                value={health}
                onChange={({ currentTarget }) => setParams({ health: currentTarget.value })}
              >
                <option value="">all</option>
                <option value="bad">with problems</option>
              </select>
            </label>
            <output>
              {rows.length} of {total}
            </output>
          </form>
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
                      <span role="cell" class="cell-object">
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
