// VitePress's own theme, with a menu of the versions of the site.
import DefaultTheme from 'vitepress/theme'
import VersionMenu from './version-menu.mjs'

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => app.component('VersionMenu', VersionMenu),
}
