/** Forms that create and change dynamic keys. */
import { useModel } from '../../state/worker-client.ts'
import { ActionForm } from '../../ui/action-form.tsx'
import { Content, Empty } from '../../ui/states.tsx'

const key = { name: 'name', label: 'Name', isRequired: true } as const
const namespace = { name: 'namespace', label: 'Namespace', hint: 'default' }

/** What may be done to a key, by the name of the action. */
const changes = [
  ['disable-key', 'Disable'],
  ['enable-key', 'Enable'],
  ['rotate-key', 'Replace, and accept the old one for 24 h'],
  ['delete-key', 'Delete'],
] as const

export function ChangeKeys({ nowMs }: { nowMs: number }) {
  const shown = useModel('dynamicKeys', { nowMs })
  return (
    <>
      <ActionForm
        action="create-key"
        title="Create a key"
        fields={[
          key,
          namespace,
          { name: 'owner', label: 'Owner' },
          { name: 'team', label: 'Team' },
          { name: 'model', label: 'Models', type: 'texts', hint: 'all' },
          { name: 'expires', label: 'Expires', hint: '90d, or a time' },
        ]}
      />
      <Content shown={shown} what="dynamic keys">
        {(rows) => {
          if (rows.length === 0) return <Empty>No key is an event of the log yet.</Empty>
          const names = rows.map((row) => `${row.namespace}/${row.name}`)
          return (
            <ActionForm
              action={{ field: 'change' }}
              title="Change a key"
              fields={[
                {
                  name: 'key',
                  label: 'Key',
                  type: 'choice',
                  value: names[0] ?? '',
                  options: names.map((name, at) => [name, `${name} (${rows[at]?.state})`] as const),
                },
                {
                  name: 'change',
                  label: 'Change',
                  type: 'choice',
                  value: 'disable-key',
                  options: changes,
                },
              ]}
              toOptions={({ key: chosen, ...options }) => {
                const [ofNamespace, name] = String(chosen).split('/')
                return { ...options, namespace: ofNamespace, name }
              }}
            />
          )
        }}
      </Content>
    </>
  )
}
