// A menu of the versions that the site has now: versions.json is newer than the pages of old versions.
import { useData } from 'vitepress'
import VPNavBarMenuGroup from 'vitepress/dist/client/theme-default/components/VPNavBarMenuGroup.vue'
import VPNavScreenMenuGroup from 'vitepress/dist/client/theme-default/components/VPNavScreenMenuGroup.vue'
import { h, onMounted, ref } from 'vue'

export default {
  /** Whether the menu is on the screen that small windows open. */
  props: { screenMenu: Boolean },
  setup(props) {
    const { siteRoot, version } = useData().theme.value
    const items = ref([])
    onMounted(async () => {
      const response = await fetch(`${siteRoot}versions.json`).catch(() => undefined)
      if (!response?.ok) return
      const versions = await response.json()
      items.value = versions.map(({ name, path }) => ({
        text: name,
        link: new URL(siteRoot + path, location.href).href,
        target: '_self',
      }))
    })
    return () =>
      props.screenMenu
        ? h(VPNavScreenMenuGroup, { text: version, items: items.value })
        : h(VPNavBarMenuGroup, { item: { text: version, items: items.value } })
  },
}
