# Completion of leasectl's arguments in bash.

_leasectl_names() {
    leasectl ls --json --no-password "$@" 2>/dev/null |
        sed -n 's/^ {"name": "\([A-Za-z0-9_./:-]*\)",.*/\1/p'
}

_leasectl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]:-} i connection="-h -p -U -d -w -W --host --port --username --dbname --no-password --password"
    local options=() reach=() word
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "run ls waiters watch break doctor --help --version" -- "$cur")
        return
    fi
    case $command in
        run) options=(--ttl --wait --keep --owner --grace -v --verbose --) ;;
        ls | waiters) options=(--json --watch) ;;
        watch) options=(--json --exec) ;;
        doctor) options=(--json) ;;
        break) ;;
        *) return ;;
    esac
    # What follows NAME and options of run is a command of its own.
    local names=0
    for ((i = 2; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
            --) names=2 ;;
            -h | -p | -U | -d | --host | --port | --username | --dbname)
                reach+=("$word" "${COMP_WORDS[++i]:-}")
                ;;
            --ttl | --wait | --keep | --owner | --grace | --exec) ((i++)) || true ;;
            --watch) ((i++)) || true ;;
            -*) ;;
            *) ((names++)) || true ;;
        esac
        if [ "$command" = run ] && [ "$names" -ge 2 ]; then
            [ "$word" != -- ] || ((i++)) || true
            if declare -F _command_offset >/dev/null; then
                _command_offset "$i"
            else
                mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
            fi
            return
        fi
    done
    case $prev in
        --ttl | --wait | --keep | --grace | --watch)
            mapfile -t COMPREPLY < <(compgen -W "1s 10s 30s 1min 5min 1h" -- "$cur")
            return
            ;;
        --owner | -p | --port | -U | --username | -d | --dbname) return ;;
        -h | --host)
            mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur")
            return
            ;;
        --exec)
            mapfile -t COMPREPLY < <(compgen -c -- "$cur")
            return
            ;;
    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${options[*]} $connection" -- "$cur")
    elif [ "$names" -eq 0 ] && [[ $command == @(run|watch|break) ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_leasectl_names "${reach[@]}")" -- "$cur")
    elif [ "$command" = run ]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    fi
}

complete -F _leasectl leasectl
